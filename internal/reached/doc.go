// SPDX-License-Identifier: Apache-2.0

// Package reached notes which rare states inside the receiver a simulated run reaches. One line at
// the place where a state occurs names it, by a literal that occurs once: the simulation reads all
// names from the source, and prints how many seeds reach each. Without the build tag reached, State
// is empty: the compiler removes its calls, and no name is in the program.
package reached
