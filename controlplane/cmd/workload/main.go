// SPDX-License-Identifier: Apache-2.0

// Workload is the program in the containers of a real node. Its argument selects what it does.
// Without one, it waits for SIGTERM, as the program of a pod's sandbox does.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	mode := strings.Join(os.Args[1:], " ")
	behaviors := map[string]func(context.Context) error{
		"":          wait,
		"succeed":   func(context.Context) error { return nil },
		"crash":     func(context.Context) error { return fmt.Errorf("crashes, as requested") },
		"serve":     func(ctx context.Context) error { return serve(ctx, http.StatusOK) },
		"unhealthy": func(ctx context.Context) error { return serve(ctx, http.StatusInternalServerError) },
		"memory":    useMemory,
		"whoami":    whoami,
	}
	behave, ok := behaviors[mode]
	if !ok {
		behave = func(context.Context) error { return fmt.Errorf("unknown mode %q", mode) }
	}
	if err := behave(ctx); err != nil {
		log.Fatal("workload: ", err)
	}
}

func wait(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// serve answers every HTTP request on port 8080 with a status code, until ctx ends.
func serve(ctx context.Context, code int) error {
	server := http.Server{Addr: ":8080", ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		fmt.Fprintln(w, http.StatusText(code))
	})}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	log.Print("listening on port 8080")
	if err := server.ListenAndServe(); ctx.Err() == nil {
		return err
	}
	return nil
}

// useMemory allocates memory until the kernel ends the program, or until it has 1 GiB.
func useMemory(ctx context.Context) error {
	var kept [][]byte
	for len(kept) < 1<<10 && ctx.Err() == nil {
		block := make([]byte, 1<<20)
		for i := 0; i < len(block); i += os.Getpagesize() {
			block[i] = 1 // so that the kernel must provide the page
		}
		kept = append(kept, block)
		time.Sleep(5 * time.Millisecond)
	}
	log.Printf("used %d MiB", len(kept))
	return nil
}
