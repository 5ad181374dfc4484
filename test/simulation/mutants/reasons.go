// SPDX-License-Identifier: Apache-2.0

package main

// reasons say of generated mutants that nothing finds, by their names, why they are not faults.
var reasons = map[string]string{}

// reasonOf returns why a mutant is not a fault; empty: no reason is known.
func reasonOf(m mutant) string { return reasons[m.name] }
