#!/bin/sh
# Fills fuzz/corpus with what the recorded corpus has for each target.
set -eu
cd "$(dirname "$0")/.."
for target in framer message rewrite fragment describe; do
  mkdir -p fuzz/corpus/$target
  cp corpus/streams/*.giop fuzz/corpus/$target/
done
for target in reference reference_text contexts cdr segment checkpoint; do
  mkdir -p fuzz/corpus/$target
done
cp corpus/references/*.ior fuzz/corpus/reference_text/
echo 'corbaloc:iiop:1.2@a.example:5000,iiop:[::1]:7,:b/k%20x' >fuzz/corpus/reference_text/corbaloc
for reference in corpus/references/*.ior; do
  cut -c5- "$reference" | tr -d '\n' | xxd -r -p >fuzz/corpus/reference/"$(basename "$reference")"
done
