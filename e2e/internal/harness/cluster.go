// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/record"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
)

// Cluster is a control plane with clients that may do everything.
type Cluster struct {
	*controlplane.ControlPlane
	kubernetes.Interface
	Dynamic dynamic.Interface
}

// StartCluster starts a control plane; its binaries are those that make built, or those that
// KUBEBUILDER_ASSETS names.
func StartCluster(ctx context.Context, options controlplane.Options) (*Cluster, error) {
	options.Binaries = controlplanetest.Binaries()
	cp, err := controlplane.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	client, errClient := kubernetes.NewForConfig(cp.RESTConfig())
	dynamicClient, errDynamic := dynamic.NewForConfig(cp.RESTConfig())
	if err := errors.Join(errClient, errDynamic); err != nil {
		return nil, errors.Join(err, cp.Stop())
	}
	return &Cluster{cp, client, dynamicClient}, nil
}

// SharedCluster is a control plane that starts when the first test asks for it.
type SharedCluster struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// Get returns the cluster.
func (s *SharedCluster) Get(t testing.TB) *Cluster {
	t.Helper()
	s.once.Do(func() { s.cluster, s.err = StartCluster(context.Background(), controlplane.Options{}) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.cluster
}

// Stop stops the cluster if a test has started it.
func (s *SharedCluster) Stop() error {
	s.once.Do(func() {})
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Stop()
}

// RunAll runs a package's tests with a cluster that they share, and returns the exit code. Where no
// control plane was built the tests are skipped, but not in CI.
func RunAll(m *testing.M, options controlplane.Options, shared **Cluster) int {
	var err error
	*shared, err = StartCluster(context.Background(), options)
	if errors.Is(err, controlplane.ErrBinariesMissing) && os.Getenv("CI") == "" {
		fmt.Fprintln(os.Stderr, "skipped:", err)
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the control plane did not start:", err)
		return 1
	}
	code := m.Run()
	if err := (*shared).Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "the control plane did not stop:", err)
		return 1
	}
	return code
}

// Apply applies the objects of files of the repository as kubectl apply does, in their order. Of
// owners, which a manifest can only name, it fills in the uid, as the controllers do that make such
// objects.
func (c *Cluster) Apply(t testing.TB, paths ...string) (applied []*unstructured.Unstructured) {
	t.Helper()
	for _, path := range paths {
		for _, object := range Objects(t, Read(t, path)) {
			applied = append(applied, c.ApplyObject(t, object))
		}
	}
	return applied
}

// Objects are the objects of a manifest. A document that has only comments is none.
func Objects(t testing.TB, manifest string) (all []*unstructured.Unstructured) {
	t.Helper()
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.ToJSON(document)
		if err != nil {
			t.Fatal(err)
		}
		if string(text) == "null" {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
}

// ApplyObject applies one object as Apply does.
func (c *Cluster) ApplyObject(t testing.TB, object *unstructured.Unstructured) (applied *unstructured.Unstructured) {
	t.Helper()
	return c.applyObject(t, object)
}

// DryRunObject checks that the API server would accept one object from Apply. It changes nothing.
func (c *Cluster) DryRunObject(t testing.TB, object *unstructured.Unstructured) {
	t.Helper()
	c.applyObject(t, object, metav1.DryRunAll)
}

func (c *Cluster) applyObject(t testing.TB, object *unstructured.Unstructured, dryRun ...string) (applied *unstructured.Unstructured) {
	t.Helper()
	owners := object.GetOwnerReferences()
	for i, owner := range owners {
		found, err := c.resource(t, schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind), object.GetNamespace()).
			Get(t.Context(), owner.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		owners[i].UID = found.GetUID()
	}
	if len(owners) > 0 {
		object.SetOwnerReferences(owners)
	}
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	Eventually(t, func() bool {
		applied, err = c.resource(t, object.GroupVersionKind(), object.GetNamespace()).Patch(t.Context(), object.GetName(), types.ApplyPatchType, body,
			metav1.PatchOptions{FieldManager: "kubectl", FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatalf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
		}
		return err == nil // Not found: a kind that was defined just now is not served yet.
	}, "the kind %s", object.GroupVersionKind())
	return applied
}

// resource waits until the kind is served: a custom resource follows its definition closely.
func (c *Cluster) resource(t testing.TB, kind schema.GroupVersionKind, namespace string) dynamic.ResourceInterface {
	t.Helper()
	var mapping *meta.RESTMapping
	Eventually(t, func() (found bool) {
		var err error
		mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Discovery()))
		mapping, err = mapper.RESTMapping(kind.GroupKind(), kind.Version)
		return err == nil
	}, "the kind %s", kind)
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return c.Dynamic.Resource(mapping.Resource)
	}
	return c.Dynamic.Resource(mapping.Resource).Namespace(namespace)
}

// Get reads an object.
func (c *Cluster) Get(t testing.TB, apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := c.resource(t, schema.FromAPIVersionAndKind(apiVersion, kind), namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// UID is that of the namespace kube-system, which identifies the cluster.
func (c *Cluster) UID(t testing.TB) string {
	t.Helper()
	return string(c.Get(t, "v1", "Namespace", "", metav1.NamespaceSystem).GetUID())
}

// Recorder records events as controllers do, with client-go's recorder, until the test ends.
func (c *Cluster) Recorder(t testing.TB, component string) record.EventRecorder {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.CoreV1().Events("")})
	t.Cleanup(broadcaster.Shutdown)
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component})
}

// KubeconfigFor is for a service account that may do what the roles in files of the repository
// allow, and nothing else.
func (c *Cluster) KubeconfigFor(t testing.TB, name string, paths ...string) string {
	t.Helper()
	kubeconfig, err := c.RestrictedKubeconfig(t.Context(), name, RulesIn(t, paths...)...)
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// RulesIn are those of all ClusterRoles and Roles in files of the repository.
func RulesIn(t testing.TB, paths ...string) (rules []rbacv1.PolicyRule) {
	t.Helper()
	for _, path := range paths {
		rules = append(rules, rulesOf(t, Read(t, path))...)
	}
	return rules
}

// DocumentedRules are those of the role that users copy from docs/rbac.md, the first below a heading.
func DocumentedRules(t testing.TB, heading string) []rbacv1.PolicyRule {
	t.Helper()
	_, section, _ := strings.Cut(Read(t, "docs", "rbac.md"), "\n## "+heading+"\n")
	_, block, found := strings.Cut(section, "```yaml\n")
	if !found {
		t.Fatal("docs/rbac.md has no block of YAML below the heading ", heading)
	}
	block, _, _ = strings.Cut(block, "```")
	return rulesOf(t, block)
}

// rulesOf are those of all ClusterRoles and Roles in a manifest.
func rulesOf(t testing.TB, manifest string) (rules []rbacv1.PolicyRule) {
	t.Helper()
	for _, object := range Objects(t, manifest) {
		if kind := object.GetKind(); kind != "ClusterRole" && kind != "Role" {
			continue
		}
		role := rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			t.Fatal(err)
		}
		rules = append(rules, role.Rules...)
	}
	if len(rules) == 0 {
		t.Fatal("a manifest without rules of roles")
	}
	return rules
}

// Compact makes etcd or kine forget all versions but the newest of everything, as they do after some
// minutes.
func (c *Cluster) Compact(t testing.TB) {
	t.Helper()
	newest, err := c.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	version, err := strconv.ParseInt(newest.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	client, err := grpc.NewClient(strings.TrimPrefix(c.EtcdEndpoint(), "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	// In a request to compact, the first field is the version, as in this message.
	err = client.Invoke(t.Context(), "/etcdserverpb.KV/Compact", wrapperspb.Int64(version), &emptypb.Empty{})
	if err != nil {
		t.Fatal("cannot compact: ", err)
	}
}
