// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
)

// get asks a server in a pod for a page, through a port that is forwarded as `kubectl port-forward`
// does. Without an answer, the code is 0 and the page has the error.
func (c *cluster) get(pod *corev1.Pod, port int, path string) (code int, page string) {
	address, end, err := c.forward(pod, port)
	if err != nil {
		return 0, err.Error()
	}
	defer end()
	response, err := http.Get("http://" + address + path)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(body)
}

// forward makes a port of a pod a port of this machine, until end is called.
func (c *cluster) forward(pod *corev1.Pod, port int) (address string, end func(), err error) {
	url := c.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	dialer, err := portforward.NewSPDYOverWebsocketDialer(url, c.RESTConfig())
	if err != nil {
		return "", nil, err
	}
	stop, ready, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.New(dialer, []string{fmt.Sprint(":", port)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		return "", nil, err
	}
	var failure error
	go func() {
		defer close(done)
		failure = forwarder.ForwardPorts()
	}()
	end = func() {
		close(stop)
		<-done
	}
	select {
	case <-done:
		return "", nil, fmt.Errorf("forward port %d of %s: %w", port, pod.Name, failure)
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		end()
		return "", nil, err
	}
	return fmt.Sprint("127.0.0.1:", ports[0].Local), end, nil
}
