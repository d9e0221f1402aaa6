#!/usr/bin/env bash
# Installs opscan; torch only where a model is run and none is there.
set -euo pipefail

if [ -n "${ACTION_VERSION:-}" ]; then
  package="opscan-metal==$ACTION_VERSION"
else
  package="$GITHUB_ACTION_PATH"
fi
python -m pip install "$package"

if [ "${ACTION_STATIC:-false}" != "true" ] && ! python -c 'import torch' 2>/dev/null; then
  python -m pip install torch numpy pyyaml expecttest
fi
