// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Where kubelet puts the service account's token, and where it reads a container's last message.
const (
	accountDir     = "/var/run/secrets/kubernetes.io/serviceaccount"
	terminationLog = "/dev/termination-log"
)

// whoami asks the API server who this pod is, with the pod's token and through the Service
// kubernetes. It reports the user's name.
func whoami(ctx context.Context) error {
	authority, err := os.ReadFile(filepath.Join(accountDir, "ca.crt"))
	if err != nil {
		return err
	}
	token, err := os.ReadFile(filepath.Join(accountDir, "token"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	client := http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}},
	}
	user, err := askForUser(ctx, &client, string(token))
	if err != nil {
		return err
	}
	return report(user)
}

// get reports what an HTTP server answers.
func get(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil) //nolint:gosec // the test selects the URL
	if err != nil {
		return err
	}
	response, err := (&http.Client{Timeout: 10 * time.Second}).Do(request) //nolint:gosec // the test selects the URL
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return report(strings.TrimSpace(string(body)))
}

// report writes a text to the log and to the container's last message.
func report(text string) error {
	log.Print(text)
	return os.WriteFile(terminationLog, []byte(text), 0o600)
}

func askForUser(ctx context.Context, client *http.Client, token string) (string, error) {
	url := "https://" + net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")) +
		"/apis/authentication.k8s.io/v1/selfsubjectreviews"
	body := []byte(`{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}`)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body)) //nolint:gosec // kubelet sets the variables
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request) //nolint:gosec // kubelet sets the variables
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("the API server answers %s", response.Status)
	}
	var review struct {
		Status struct {
			UserInfo struct{ Username string }
		}
	}
	err = json.NewDecoder(response.Body).Decode(&review)
	return review.Status.UserInfo.Username, err
}
