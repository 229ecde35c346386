# Sourced by the scripts here, which have made the folder $work.
# with_packages PACKAGE=VERSION ...: downloads Debian's packages that are not installed in that version, with what they need, unpacks them in $work, and puts
# them before what is installed. Nothing outside of $work changes. Ends the script with status 77 where a version cannot be had.
with_packages() {
  local package missing=() deb libraries
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${Version}' "${package%%=*}" 2>/dev/null)" = "${package#*=}" ] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  mkdir -p "$work/debs/partial" "$work/root"
  apt-get -qq -y -o Dir::Cache::archives="$work/debs" -o Debug::NoLocking=true --no-install-recommends --download-only install "${missing[@]}" \
    >/dev/null 2>&1 || { echo "skipped: no package ${missing[*]} within reach"; exit 77; }
  for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$work/root"; done
  libraries=$(echo "$work"/root/usr/lib/*-linux-gnu*)
  export PATH="$work/root/usr/bin:$PATH" LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" GST_PLUGIN_PATH="$libraries/gstreamer-1.0"
}
