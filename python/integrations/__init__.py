"""Tests of the adapters with the real frameworks, run by .ci/integrations: each file where its framework is installed."""
