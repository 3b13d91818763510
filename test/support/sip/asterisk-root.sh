#!/usr/bin/env bash
# Makes a folder with Debian sid's Asterisk and the libraries it needs, for ASTERISK_ROOT, and prints
# its path: packages are fetched and unpacked by apt and dpkg, nothing is installed, and nobody has
# to be root. A folder that is there already is used again. Where it cannot be made, the reason goes
# to stderr and nothing is printed, so that tests with Asterisk are skipped.
#   ASTERISK_ROOT="$(test/support/sip/asterisk-root.sh)" npm test
set -euo pipefail
cd "$(dirname "$0")/../.."
root="$PWD/node_modules/.cache/asterisk"
mirror="${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
if [ ! -x "$root/usr/sbin/asterisk" ]; then
  mkdir -p "${root%/*}"
  work="$(mktemp -d "$root.XXXXXX")"
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/root/usr/lib" "$work/root/usr/lib64"
  : > "$work/status"
  keys=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "deb [signed-by=$keys] $mirror sid main" > "$work/sources.list"
  options=(
    -qq -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$work/lists" -o "Dir::State::Status=$work/status"
    -o "Dir::Cache=$work" -o "Dir::Cache::Archives=$work/archives" -o APT::Sandbox::User=
    # A mirror frozen at a date says what was valid then.
    -o Acquire::Check-Valid-Until=false -o Acquire::Languages=none -o Acquire::http::Timeout=20
  )
  packages=(asterisk asterisk-modules)
  {
    apt-get "${options[@]}" update --error-on=any &&
    apt-get "${options[@]}" install --download-only --no-install-recommends -y "${packages[@]}"
  } > "$work/log" 2>&1 || {
    echo "no Asterisk: $mirror did not give the packages of Debian sid" >&2
    tail -n 3 "$work/log" >&2
    exit 1
  }
  ln -s usr/lib "$work/root/lib"
  ln -s usr/lib64 "$work/root/lib64"
  for package in "$work"/archives/*.deb; do dpkg-deb --fsys-tarfile "$package" |
    tar -x -C "$work/root" --keep-directory-symlink --no-same-owner; done
  rm -rf "$root"
  mv "$work/root" "$root"
fi
echo "$root"
