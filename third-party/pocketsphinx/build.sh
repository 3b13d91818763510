#!/usr/bin/env bash
# Builds all there is in this folder from Debian's packages: pocketsphinx.wasm from the sources of
# pocketsphinx and sphinxbase with Debian's emscripten, and model/ from pocketsphinx-en-us.
#   apt-get install emscripten dpkg-dev pocketsphinx-en-us
#   third-party/pocketsphinx/build.sh
set -euo pipefail
cd "$(dirname "$0")"
words=40000 threshold=5e-8
debian=/usr/share/pocketsphinx/model/en-us
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

for name in mdef means variances transition_matrices sendump feat.params noisedict; do
  install -D -m 644 "$debian/en-us/$name" "model/$name"
done
node prune.mjs "$debian/en-us.lm.bin" "$debian/cmudict-en-us.dict" "$words" "$threshold" \
  model/language.bin model/dictionary

# Sources through apt, with lists of its own, as most machines have none for sources.
mkdir -p "$work/lists/partial"
release="$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")"
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
  "${DEBIAN_MIRROR:-http://deb.debian.org/debian} $release main" > "$work/sources.list"
options=(
  -qq -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null
  -o "Dir::State::Lists=$work/lists" -o APT::Sandbox::User=
)
apt-get "${options[@]}" update
(cd "$work" && apt-get "${options[@]}" source pocketsphinx sphinxbase)
sphinx="$(echo "$work"/pocketsphinx-*/)" base="$(echo "$work"/sphinxbase-*/)"

mkdir "$work/include"
printf '#define HAVE_UNISTD_H 1\n' > "$work/include/config.h"
printf '#define SIZEOF_LONG 4\n#define HAVE_LONG_LONG 1\n#define SIZEOF_LONG_LONG 8\n' \
  > "$work/include/sphinx_config.h"
# Without threads, pitch and linear algebra, which nothing here needs.
mapfile -t sources < <(
  find "$sphinx/src/libpocketsphinx" "$base/src/libsphinxbase" -name '*.c' \
    ! -name sbthread.c ! -name yin.c ! -name slamch.c ! -name '*_lite.c' |
    sort
)
# No file system, no network, no threads: what is left to import are clock, exit and a few that are
# never called.
emcc -O3 -msimd128 -w -DHAVE_CONFIG_H -Dfopen=open_given_file \
  -I"$work/include" -I"$base/include" -I"$base/include/sphinxbase" \
  -I"$sphinx/include" -I"$sphinx/src/libpocketsphinx" \
  "${sources[@]}" decoder.c -o pocketsphinx.wasm \
  --no-entry -sSTANDALONE_WASM -sALLOW_MEMORY_GROWTH -sMAXIMUM_MEMORY=2GB \
  -sERROR_ON_UNDEFINED_SYMBOLS=0 \
  -sEXPORTED_FUNCTIONS=_malloc,_free,_give_file,_make_decoder,_ps_free,_ps_start_utt,_ps_end_utt,_ps_process_raw,_ps_get_hyp
chmod 644 pocketsphinx.wasm
du -ch pocketsphinx.wasm model/*
