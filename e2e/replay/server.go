// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Live are the events that exist before the first change. They are made when they are listed and
// not held.
type Live interface {
	Len() int
	// Event makes one of them, in the order of a listing.
	Event(i int) *corev1.Event
}

// Options describe what a server simulates.
type Options struct {
	Live    Live          // nil: there are none
	Fleet   *Fleet        // what owners are looked up in; nil: nothing exists, until SetFleet
	Latency time.Duration // how long each answer about owners and about kinds takes
	Plain   bool          // HTTP/1.1 without TLS
}

// Server simulates an API server on the loopback interface. Its methods may be called concurrently.
type Server struct {
	streamed atomic.Int64 // how many streamed lists have ended

	options   Options
	url       string
	authority []byte // PEM; empty without TLS
	http      *http.Server
	served    sync.WaitGroup
	closed    chan struct{}
	requests  requests
	kept      kept

	mu       sync.Mutex // guards what follows
	fleet    *Fleet
	frames   []Frame       // only ever appended to
	released chan struct{} // closed when frames has grown
}

// Start begins to serve.
func Start(options Options) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{options: options, fleet: options.Fleet, url: "http://" + listener.Addr().String(), closed: make(chan struct{}), released: make(chan struct{})}
	s.http = &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	if !options.Plain {
		certificate, err := selfSigned()
		if err != nil {
			return nil, errors.Join(err, listener.Close())
		}
		s.url = "https://" + listener.Addr().String()
		s.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
		s.http.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}
	}
	s.served.Go(func() {
		if options.Plain {
			_ = s.http.Serve(listener)
		} else {
			_ = s.http.ServeTLS(listener, "", "")
		}
	})
	return s, nil
}

// selfSigned makes a certificate for the loopback interface that is its own authority.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}, err
}

// Close breaks all connections and returns when nothing is served any more. It may be called more
// than once.
func (s *Server) Close() {
	s.mu.Lock()
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	s.mu.Unlock()
	_ = s.http.Close()
	s.served.Wait()
}

// URL is where the server is.
func (s *Server) URL() string { return s.url }

// WriteKubeconfig writes a file with which clients find the server.
func (s *Server) WriteKubeconfig(path string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["replay"] = &clientcmdapi.Cluster{Server: s.url, CertificateAuthorityData: s.authority}
	config.AuthInfos["replay"] = &clientcmdapi.AuthInfo{}
	config.Contexts["replay"] = &clientcmdapi.Context{Cluster: "replay", AuthInfo: "replay"}
	config.CurrentContext = "replay"
	return clientcmd.WriteToFile(*config, path)
}

// Release sends the next changes.
func (s *Server) Release(frames ...Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames = append(s.frames, frames...)
	close(s.released)
	s.released = make(chan struct{})
}

// SetFleet changes what owners are looked up in. The fleet must not be changed afterwards.
func (s *Server) SetFleet(fleet *Fleet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fleet = fleet
}

// currentFleet is never nil.
func (s *Server) currentFleet() *Fleet {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fleet == nil {
		return &Fleet{}
	}
	return s.fleet
}

// after returns the changes after the first n, and a channel that is closed when there are more.
func (s *Server) after(n int) (frames []Frame, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frames[min(n, len(s.frames)):], s.released
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	target := parse(r)
	s.requests.count(target.kind)
	switch target.kind {
	case EventsList:
		s.listEvents(w, r, target.namespace)
	case EventsStream:
		s.streamEvents(w, r, target.namespace)
	case EventsWatch:
		s.watchEvents(w, r, target.namespace)
	case OwnerGet:
		s.getOwner(w, r, target)
	case OwnerList:
		s.listOwners(w, r, target)
	case Discovery:
		s.discover(w, r)
	case Election:
		s.serveKept(w, r, target)
	case ClusterIdentity:
		answer(w, accepted(r), clusterNamespace())
	default:
		notFound(w, r)
	}
}
