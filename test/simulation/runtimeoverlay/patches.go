// SPDX-License-Identifier: Apache-2.0

package main

// change is one text of a file that another one replaces.
type change struct{ from, to string }

// patches are the changes of the runtime, by file. With one P, they make what a bubble's goroutines
// do a function of the process's input: its random numbers come from the bubble, and neither the
// time that passes nor goroutines outside the bubble have a part in their order.
var patches = map[string][]change{
	"synctest.go": {
		{"	active  int // other sources of activity\n}\n", `	active  int // other sources of activity
	random  uint64
}

// currentBubble returns the bubble of the current goroutine, also on the stack of the system.
//
//go:nosplit
func currentBubble() *synctestBubble {
	if gp := getg().m.curg; gp != nil {
		return gp.bubble
	}
	return nil
}

// nextRandom is wyrand.
//
//go:nosplit
func (bubble *synctestBubble) nextRandom() uint64 {
	bubble.random += 0xa0761d6478bd642f
	hi, lo := math.Mul64(bubble.random, bubble.random^0xe7037ed1a0b428db)
	return hi ^ lo
}
`},
		{"	\"internal/runtime/atomic\"\n", "	\"internal/runtime/atomic\"\n	\"internal/runtime/math\"\n"},
	},
	"rand.go": {
		{"func rand() uint64 {\n", `func rand() uint64 {
	if bubble := currentBubble(); bubble != nil {
		return bubble.nextRandom()
	}
`},
		// Else the keys of hashes differ from process to process.
		{"	globalRand.state.Init(*seed)\n", "	clear(seed[:])\n	globalRand.state.Init(*seed)\n"},
	},
	"select.go": {
		{"		j := cheaprandn(uint32(norder + 1))\n", "		j := randn(uint32(norder + 1))\n"},
	},
	"time.go": {
		{"			t.rand = cheaprand()\n", "			t.rand = uint32(rand())\n"},
	},
	"proc.go": {
		// The system's monitor neither preempts goroutines nor lets others run during a slow system call.
		{"func retake(now int64) uint32 {\n", "func retake(now int64) uint32 {\n	if debug.asyncpreemptoff != 0 {\n		return 0\n	}\n"},
		{"	if pp.schedtick%61 == 0 && ", "	if debug.asyncpreemptoff == 0 && pp.schedtick%61 == 0 && "},
		// A main goroutine with a thread of its own makes a race of the threads at the start: some
		// processes would have one more, which takes memory.
		{"	lockOSThread()\n\n	if mp != &m0 {\n", "	if mp != &m0 {\n"},
		{"	needUnlock := true\n", "	needUnlock := false\n"},
		{"	needUnlock = false\n	unlockOSThread()\n", ""},
		// Two goroutines that wake each other would never let a third one run: there is no preemption.
		{"func runqput(pp *p, gp *g, next bool) {\n", `func runqput(pp *p, gp *g, next bool) {
	if next {
		next = gp.bubble != nil && gp.bubble.nextRandom()&1 == 0
	}
`},
	},
	"mem_linux.go": {
		{"	setVMAName(p, n, vmaName)\n\n	// Disable", "	setVMAName(p, n, vmaName)\n	if vmaName == \"heap\" {\n		madvise(p, n, 23)\n	}\n\n	// Disable"},
	},
	"sema.go": {
		{"func internal_sync_nanotime() int64 {\n", "func internal_sync_nanotime() int64 {\n	if currentBubble() != nil {\n		return 0\n	}\n"},
	},
}
