"""Secrets are masked in every form that an issuer documents; what only looks like one stays."""

from __future__ import annotations

import pytest

from firstfault.correlate.secrets import MASK, masked

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("key AKIA" + "ABCDEFGHIJKLMNOP used", "AKIA" + "ABCDEFGHIJKLMNOP"),
        ("aws_secret_access_key = " + LETTERS[:40], LETTERS[:40]),
        ("HF_TOKEN=hf_" + LETTERS[:34], "hf_" + LETTERS[:34]),
        ("login with ghp_" + LETTERS[:36], "ghp_" + LETTERS[:36]),
        ("glpat-" + LETTERS[:20], "glpat-" + LETTERS[:20]),
        ("xoxb-" + "123456789012-abcdefABCDEF", "123456789012-abcdefABCDEF"),
        ("OPENAI sk-" + LETTERS[:30], "sk-" + LETTERS[:30]),
        ("wandb: api_key=" + LETTERS[:40], LETTERS[:40]),
        ("Authorization: Bearer abc.def-123456", "abc.def-123456"),
        ('{"authorization": "Basic dXNlcjpwYXNz"}', "dXNlcjpwYXNz"),
        ("curl -H 'Bearer " + LETTERS[:24] + "'", LETTERS[:24]),
        ("https://alice:hunter22@example.com/repo", "hunter22"),
        ("s3 url https://b/x?X-Amz-Signature=0123456789abcdef0123", "0123456789abcdef0123"),
        ("db password: correct-horse", "correct-horse"),
        ("--token abcdEFGH1234", "abcdEFGH1234"),
        ("jwt eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "eyJhbGciOiJI"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\n-----END RSA PRIVATE KEY-----", "MIIEabc"),
    ],
)
def test_a_secret_is_masked(text: str, secret: str) -> None:
    shown = masked(text)
    assert secret not in shown
    assert MASK in shown


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=4096 num_tokens: 123456",
        "pad_token=<|endoftext|> eos_token_id=50256",
        "tokenizer loaded from /data/tokenizer.json",
        "KeyError: 'position_embedding_type'",
        "step 100 loss 2.3 tokens per second 123456.78",
        "The hostname of the client socket cannot be retrieved",
        "Broken pipe while reading key from store: 0/default_pg/0//cuda//1",
        "http://10.0.0.1:29500/ is the store",
        "bearer of bad news",
        "commit 3f2c9a7d1b5e8f60718293a4b5c6d7e8f9012345 checked out",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert masked(text) == text


def test_masking_twice_changes_nothing() -> None:
    once = masked("password=abcdef1234 and Bearer " + LETTERS[:24])
    assert masked(once) == once
