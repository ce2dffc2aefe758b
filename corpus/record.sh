#!/bin/sh
# Records the streams and references of this folder anew. Run it from the top of the source tree
# after `cargo xtask deps`, `cargo xtask examples` and
# `cargo build -p quorba-giop --example record`. Ports 6970 to 6972 on loopback must be free.
set -eu
examples=target/examples
out=corpus/streams
references=corpus/references
server_at=127.0.0.1:6970
proxy_at=127.0.0.1:6971
recorder=${RECORDER:-target/debug/examples/record}
scratch=$(mktemp -d)
trap 'stop; rm -rf "$scratch"' EXIT
started=

# start COMMAND...: waits until it says READY.
start() {
  log=$scratch/log
  : >"$log"
  "$@" >"$log" 2>&1 &
  started="$! $started"
  for _ in $(seq 200); do
    grep -q "${ready:-READY}" "$log" && return
    sleep 0.05
  done
  cat "$log" >&2
  return 1
}

# Servers first: they say CloseConnection, which the recorder then still passes on.
stop() {
  for process in $started; do
    kill "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
  done
  started=
}

recorder() { start "$recorder" $proxy_at $server_at "$out/$1"; }
omniorb() { start "$@" -ORBendPoint giop:tcp:$server_at -ORBendPointPublish giop:tcp:$proxy_at; }
jacorb() { start $examples/jacorb-bank/bin/bank-server --listen $server_at --publish $proxy_at; }
load="--accounts 2 --seconds 0.4 --rate 40 --oneway-share 20"
bank_omniorb="$examples/omniorb-bank/bank_client $load --name o"
bank_jacorb="$examples/jacorb-bank/bin/bank-client $load --name j"
echo_omniorb="$examples/omniorb-echo/echo_client --warm-up 0"

mkdir -p "$out" "$references"
rm -f "$out"/* "$references"/*
genior IDL:Bank/Ledger:1.0 127.0.0.1 6000 bank >"$references/omniorb-genior.ior"

for version in 1.0 1.1 1.2; do
  recorder omniorb-bank-$version
  omniorb $examples/omniorb-bank/bank_server
  $bank_omniorb --ref corbaloc:iiop:$version@$proxy_at/bank
  # Nobody is there: OBJECT_NOT_EXIST. And a bank does not echo: BAD_OPERATION.
  $bank_omniorb --ref corbaloc:iiop:$version@$proxy_at/nobody --accounts 1 --seconds 0.05
  $echo_omniorb --ref corbaloc:iiop:$version@$proxy_at/bank --calls 1 || true
  stop
  recorder jacorb-bank-$version
  jacorb
  $bank_jacorb --ref corbaloc:iiop:$version@$proxy_at/bank
  $bank_jacorb --ref corbaloc:iiop:$version@$proxy_at/nobody --accounts 1 --seconds 0.05
  stop
  recorder omniorb-to-jacorb-bank-$version
  jacorb
  $bank_omniorb --ref corbaloc:iiop:$version@$proxy_at/bank
  stop
  recorder jacorb-to-omniorb-bank-$version
  omniorb $examples/omniorb-bank/bank_server
  $bank_jacorb --ref corbaloc:iiop:$version@$proxy_at/bank
  $bank_jacorb --ref corbaloc:iiop:$version@$proxy_at/nobody --accounts 1 --seconds 0.05
  stop
  # 12 kB each way: omniORB sends more than 8 kB in fragments, but not in GIOP 1.0.
  recorder omniorb-echo-$version
  omniorb $examples/omniorb-echo/echo_server
  $echo_omniorb --ref corbaloc:iiop:$version@$proxy_at/echo --calls 2 --longs 3000
  $echo_omniorb --ref corbaloc:iiop:$version@$proxy_at/echo --calls 1 --longs 6000
  stop
done

# The naming service: a locate that is forwarded, references in parameters and results, NotFound.
recorder omninames
mkdir "$scratch/names"
ready='Wrote initial data file' omniorb omniNames -start 6972 -logdir "$scratch/names" -ignoreport
names="nameclt -ORBInitRef NameService=corbaloc:iiop:1.2@$proxy_at/NameService"
$names bind_new_context bank
$names bind bank/ledger "$(cat "$references/omniorb-genior.ior")"
$names list
$names list bank
$names resolve bank/ledger >"$references/omniorb-resolved.ior"
for version in 1.0 1.1 1.2; do
  nameclt -ORBInitRef NameService=corbaloc:iiop:$version@$proxy_at/NameService \
    resolve nobody || true
done
$names unbind nobody || true
sed -n 's/.*Root context is //p' "$log" >"$references/omninames-root.ior"
stop
# JacORB forwards a locate: the reference stands behind a header of 12 octets, an id and a status.
{
  printf 'IOR:00000000'
  tail -c +21 "$out/omniorb-to-jacorb-bank-1.1-1.server.giop" | od -An -v -tx1 | tr -d ' \n'
  echo
} >"$references/jacorb-forwarded.ior"
find "$out" -size 0 -delete
