# Fetches the archive behind BUNDLE_URL, unless it is in the cache already, and unpacks it.
# Runs in the init container, so the web server never starts with half a site.
set -eu

# Under the name of its link: the cache never serves the archive of another one.
archive=$CACHE/$(printf '%s' "$BUNDLE_URL" | sha256sum | cut -c 1-64).tar.gz

# What was fetched once is not fetched again. The cache outlives the restart of a node; with a claim, it outlives
# the pod too. So an expired link does no harm to a pod that finds its archive here.
if [ ! -e "$archive" ]; then
  part=$(mktemp "$CACHE/part.XXXXXX")
  trap 'rm -f "$part"' EXIT
  # The link comes by standard input: neither the process list nor an error of curl shows it.
  printf 'url = "%s"\n' "$BUNDLE_URL" |
    curl --config - --output "$part" --fail --location --silent --show-error \
      --connect-timeout 10 --retry 5 --retry-connrefused

  # A mirrored archive is named by its checksum.
  name=${BUNDLE_URL%%\?*}
  name=${name##*/}
  sum=${name%.tar.gz}
  if printf '%s\n' "$sum" | grep -Eqx '[0-9a-f]{64}'; then
    echo "$sum  $part" | sha256sum -c
  else
    gzip -t "$part"
  fi
  mv "$part" "$archive"
  # Keep ten, as many as Helm keeps revisions to roll back to.
  ls -t "$CACHE"/*.tar.gz "$CACHE"/part.* 2>/dev/null | tail -n +11 | xargs rm -f
fi

touch "$archive"
tar -xzf "$archive" -C "$SITE"
