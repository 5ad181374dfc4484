#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Writes an event on a Deployment: a change was approved.
#   approve.sh NAMESPACE DEPLOYMENT MESSAGE
# APPROVER is the name of the person who approved (default: $USER).
set -eu

if [ $# -ne 3 ]; then
	echo "usage: $0 NAMESPACE DEPLOYMENT MESSAGE" >&2
	exit 2
fi
namespace=$1
deployment=$2
message=$3
approver=${APPROVER:-${USER:-unknown}}
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)

# With the uid, the event belongs to this Deployment, and not to a later one of the same name.
uid=$(kubectl --namespace "$namespace" get deployment "$deployment" --output jsonpath='{.metadata.uid}')

# The event is JSON, because JSON can hold any text.
quote() {
	printf '%s' "$1" | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' | tr '\n\t' '  '
}

kubectl create --filename - <<EOF
{
  "apiVersion": "v1",
  "kind": "Event",
  "metadata": {"generateName": "$deployment.approval.", "namespace": "$namespace"},
  "type": "Normal",
  "reason": "DeploymentApproved",
  "action": "Approve",
  "message": "$(quote "$message"), approved by $(quote "$approver")",
  "involvedObject": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "$namespace", "name": "$deployment", "uid": "$uid"},
  "source": {"component": "approval"},
  "reportingComponent": "example.com/approval",
  "reportingInstance": "$(quote "$approver")",
  "firstTimestamp": "$now",
  "lastTimestamp": "$now",
  "count": 1
}
EOF
