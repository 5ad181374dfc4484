// SPDX-License-Identifier: Apache-2.0

// Workload is the program in the containers of a real node. Its argument selects what it does.
// Without one, it waits for SIGTERM, as the program of a pod's sandbox does.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"
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
	args = append(args, "", "") // what it does, and with what
	switch args[0] {
	case "":
		<-ctx.Done()
		return nil
	case "succeed":
		return nil
	case "crash":
		return errors.New("it crashes, as requested")
	case "kill":
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "terminate":
		return terminate()
	case "unhealthy":
		return serveErrors(ctx)
	case "memory":
		return useMemory(ctx, args[1])
	case "follow":
		return follow(ctx, args[1])
	}
	return fmt.Errorf("unknown arguments %q", args)
}

// terminate ends the program as a signal does that it does not catch. It only returns if that fails.
func terminate() error {
	signal.Reset(syscall.SIGTERM)
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		return err
	}
	time.Sleep(time.Minute)
	return errors.New("SIGTERM did not end it")
}

// follow does what a file says, as soon as it says something.
func follow(ctx context.Context, path string) error {
	for ctx.Err() == nil {
		content, err := os.ReadFile(path) //nolint:gosec // The pod names it.
		if err != nil {
			return err
		}
		if len(content) > 0 {
			return run(ctx, strings.Fields(string(content)))
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
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

// useMemory allocates MiB of memory, 1,024 if limit is empty, unless the kernel ends the program before. With
// a limit, it keeps them until ctx ends.
func useMemory(ctx context.Context, limit string) error {
	most, err := strconv.Atoi(cmp.Or(limit, "1024"))
	var kept [][]byte
	for len(kept) < most && ctx.Err() == nil {
		block := make([]byte, 1<<20)
		for i := 0; i < len(block); i += os.Getpagesize() {
			block[i] = 1 // so that the kernel must provide the page
		}
		kept = append(kept, block)
		time.Sleep(5 * time.Millisecond)
	}
	log.Printf("used %d MiB", len(kept))
	if limit != "" {
		<-ctx.Done()
	}
	runtime.KeepAlive(kept)
	return err
}
