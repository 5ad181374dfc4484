// SPDX-License-Identifier: Apache-2.0

package simulation

// corpus are seeds that once broke a promise, before plans had workloads whose events call for details: theirs stay
// without them.
var corpus = []uint64{
	5029, 6105, 7465, 8781, // an event whose first occurrence is old, of which only a later state is seen
	5923, 8136, 8452, // more than 12 MiB of events are held
	9613,       // another cluster at the address
	2756,       // a new leader does not learn the newest version
	7020, 8517, // a delivery that began in a term is accepted after another process has the lease
	8819,                       // an event has several counts, and etcd is restored to one between them
	2183,                       // a later term repeats a request of which a part was accepted
	8266,                       // a record that is made after etcd was restored, of the lost history
	9160,                       // a new leader delivered what it listed in the same millisecond
	18012, 30946, 31795, 87428, // connections are slow, and then the pipeline rejects what they brought
	90328, 95398, // etcd is restored while a leader's window holds what the backup lacks, or has
	110399,    // the answer to a renewal of the lease stalls, and all later renewals fail
	20078,     // a leader whose progress was not noted had listed what the next one saw one by one
	23294,     // a process is killed right after the last write of its orderly end
	55631,     // the answer that makes a process the leader comes after the lease has expired
	30776,     // nobody leads when another cluster takes the address, and a first list is not delivered
	31212,     // etcd is restored, and the last process to start is not the leader
	72414,     // a new leader repeats one by one what another had listed, and delivered more of since
	45928,     // etcd is restored before the first list has ended
	50042,     // etcd is restored, and its versions pass at once what the receiver knew
	90078,     // a version expires while the API server cannot be reached, and then the pipeline rejects
	345,       // a window holds something of a new leader's first list, and the leader is killed
	254,       // two windows hold one event
	588,       // a term ends while its progress cannot be noted
	546, 4235, // a process whose window holds something, also of a first list, is killed, and another cluster takes the address
	7828,  // a term ends while its windows hold the progress, and the same process leads again
	8448,  // a process is killed before the last write of its orderly end
	9040,  // a workload that may not be read is of a kind Pod of another group
	9635,  // a list of large events, of which some pages are refused
	10140, // the owners of the first of two records are found late
	12439, // a leader may not write its progress at first, and then no event comes
	18409, // a new leader lists an old event whose first occurrence is older than itself
	18776, // a leader ends in an orderly way during a list that does not end
	23423, // a process is killed while it waits for owners, and the record leaves it
}

// corpusOfDetails are seeds with such workloads, in which a fault that is put into the details breaks a promise.
var corpusOfDetails = []uint64{
	52,  // a run begins and ends in the second of a back-off before it
	86,  // a pause ends in the second of a back-off
	183, // an event of a StatefulSet or DaemonSet is late, and has a later revision
	690, // a ReplicaSet was used more than once
}
