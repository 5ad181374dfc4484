// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// draw returns the generator for one decision: the number-th of an actor. Decisions are functions
// of seed, actor and number alone, so that neither the order in which requests arrive nor a fault
// that is taken out of a plan changes any other decision.
func draw(seed uint64, actor string, number int) *rand.Rand {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(actor))
	return rand.New(rand.NewPCG(mix(seed), mix(hash.Sum64()+uint64(number))))
}

// mix spreads neighbouring seeds over all 64 bits (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// chance reports true once in n draws on average.
func chance(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// between returns a value from low up to, but not including, high.
func between[N time.Duration | int](r *rand.Rand, low, high N) N {
	return low + N(r.Int64N(int64(high-low)))
}

// oneOf returns one of the values; a value that is listed twice is twice as likely.
func oneOf[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }
