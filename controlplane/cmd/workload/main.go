// SPDX-License-Identifier: Apache-2.0

// Workload is the program in the containers of a real node. Its argument selects what it does.
// Without one, it waits for SIGTERM, as the program of a pod's sandbox does.
package main

import (
	"context"
	"errors"
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
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal("workload: ", err)
	}
}

func run(ctx context.Context, args []string) error {
	switch strings.Join(args[:min(1, len(args))], "") {
	case "":
		<-ctx.Done()
		return nil
	case "succeed":
		return nil
	case "crash":
		return errors.New("it crashes, as requested")
	case "kill":
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "unhealthy":
		return serveErrors(ctx)
	case "memory":
		return useMemory(ctx)
	}
	return fmt.Errorf("unknown arguments %q", args)
}

// serveErrors answers every HTTP request on port 8080 with status 500, until ctx ends.
func serveErrors(ctx context.Context) error {
	server := http.Server{Addr: ":8080", ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
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
