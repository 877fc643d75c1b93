import dataclasses
import os
import ssl
import stat
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from collegium.errors import LiveError
from collegium.live import keys

NOW = datetime.now(UTC)


@pytest.fixture
def authority(tmp_path):
    return keys.create_authority(tmp_path, "net")


@pytest.fixture
def files(authority, tmp_path):
    return keys.issue(authority, tmp_path / "agents", "agent-3", ["10.0.0.3", "three.example.org", "::1"])


def load(path):
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_a_certificate_says_who_and_where(files, authority):
    certificate = load(files.certificate)
    assert keys.common_name(certificate) == "agent-3"
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == ["10.0.0.3", "three.example.org", "::1"]
    uses = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert {use._name for use in uses} == {"serverAuth", "clientAuth"}
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert load(authority.certificate).extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert (files.ca, files.certificate.name, files.key.name) == (authority.certificate, "agent-3.pem", "agent-3.key")
    assert keys.check(files, "agent-3") == certificate.not_valid_after_utc


def test_keys_are_for_their_owner_only(files, authority):
    for path in (files.key, authority.key):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b"PRIVATE" not in files.certificate.read_bytes() + files.ca.read_bytes()


def test_validity(tmp_path):
    authority = keys.create_authority(tmp_path, "net", days=100, start=NOW)
    files = keys.issue(authority, tmp_path, "a", ["10.0.0.1"], days=30, start=NOW)
    longer = keys.issue(authority, tmp_path, "b", ["10.0.0.1"], days=500, start=NOW)
    whole = NOW.replace(microsecond=0)
    assert keys.check(files, "a") == whole + timedelta(days=30)
    ends = load(longer.certificate).not_valid_after_utc
    assert keys.check(longer, "b") == ends == whole + timedelta(days=100)  # no longer than the authority's
    keys.check(files, "a", NOW - timedelta(minutes=50))  # on a host whose clock is behind


def test_a_later_certificate_works_with_the_first(authority, files, tmp_path):
    later = keys.issue(authority, tmp_path / "agents", "agent-4", ["10.0.0.4"], start=NOW + timedelta(days=100))
    keys.check(later, "agent-4", NOW + timedelta(days=100))
    first = files.certificate.read_bytes()
    renewed = keys.issue(authority, tmp_path / "agents", "agent-3", ["10.0.0.3"], replace=True)
    assert renewed == files
    assert files.certificate.read_bytes() != first
    keys.check(files, "agent-3")


def test_python_accepts_them_for_tls(files):
    context = ssl.create_default_context(cafile=str(files.ca))
    context.load_cert_chain(files.certificate, files.key)


@pytest.mark.parametrize("name", ["row 0, column 0", "agent-3", "Zürich", "x" * 64, "a.b@c", "7"])
def test_names_that_are_taken(authority, tmp_path, name):
    keys.check(keys.issue(authority, tmp_path, name, ["localhost"]), name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a\\b", "a*", "a#", "a?", "$a", "@a", " a", "a ", "a\n", "x" * 65, "-a", "\0"]
)
def test_names_that_are_not(authority, tmp_path, name):
    with pytest.raises(LiveError, match="an agent's name must be 1 to 64"):
        keys.issue(authority, tmp_path, name, ["localhost"])
    with pytest.raises(LiveError, match="a network's name must be 1 to 64"):
        keys.create_authority(tmp_path / "other", name)


@pytest.mark.parametrize("host", ["", "a b", "tls/10.0.0.1:7000", "10.0.0.1:7000", "*", "ä.de"])
def test_hosts_that_are_none(authority, tmp_path, host):
    with pytest.raises(LiveError, match="a host must be an IP address or a DNS name"):
        keys.issue(authority, tmp_path, "a", [host])


def test_impossible_wishes(authority, tmp_path):
    with pytest.raises(LiveError, match="must name at least one host"):
        keys.issue(authority, tmp_path, "a", [])
    with pytest.raises(LiveError, match="at least 1 day; got 0"):
        keys.issue(authority, tmp_path, "a", ["localhost"], days=0)
    with pytest.raises(LiveError, match=r"expired since .*: make a new network"):
        keys.issue(authority, tmp_path, "a", ["localhost"], start=NOW + timedelta(days=4000))


def test_nothing_is_replaced_unasked(authority, files, tmp_path):
    with pytest.raises(LiveError, match=r"ca.pem is there already: move it away, or choose another folder"):
        keys.create_authority(tmp_path, "net")
    before = files.key.read_bytes()
    with pytest.raises(LiveError, match=r"agent-3.pem is there already"):
        keys.issue(authority, tmp_path / "agents", "agent-3", ["10.0.0.3"])
    assert files.key.read_bytes() == before


def test_an_unwritable_folder_is_named(authority, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(LiveError, match="cannot write into the folder"):
        keys.issue(authority, tmp_path / "file" / "agents", "a", ["localhost"])


def test_check_names_missing_files(files, tmp_path):
    for field, what in (("ca", "certificate of the authority"), ("certificate", "certificate of"), ("key", "key of")):
        wrong = dataclasses.replace(files, **{field: tmp_path / "none"})
        with pytest.raises(LiveError, match=f"the {what}.* is missing: there is no file .*none"):
            keys.check(wrong, "agent-3")


def test_check_names_unreadable_files(files, tmp_path):
    with pytest.raises(LiveError, match=r"the key of agent-3 cannot be read: .*directory"):
        keys.check(dataclasses.replace(files, key=tmp_path), "agent-3")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_check_names_forbidden_files(files):
    files.key.chmod(0)
    with pytest.raises(LiveError, match=r"the key of agent-3 cannot be read: .*Permission denied"):
        keys.check(files, "agent-3")


def test_check_names_other_contents(files, tmp_path):
    junk = tmp_path / "junk"
    junk.write_text("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n")
    with pytest.raises(LiveError, match="junk is not a certificate in PEM form"):
        keys.check(dataclasses.replace(files, certificate=junk), "agent-3")
    with pytest.raises(LiveError, match="junk is not a private key in PEM form"):
        keys.check(dataclasses.replace(files, key=junk), "agent-3")


def test_check_names_a_key_of_another_certificate(authority, files, tmp_path):
    other = keys.issue(authority, tmp_path, "agent-4", ["10.0.0.4"])
    with pytest.raises(LiveError, match=r"agent-4.key does not belong to the certificate .*agent-3.pem"):
        keys.check(dataclasses.replace(files, key=other.key), "agent-3")


def test_check_names_another_authority(files, tmp_path):
    other = keys.create_authority(tmp_path / "other", "net")  # of the same name, too
    with pytest.raises(LiveError, match=r"was signed by another authority than .*other"):
        keys.check(dataclasses.replace(files, ca=other.certificate), "agent-3")
    with pytest.raises(LiveError, match="does not belong to the authority's certificate"):
        keys.issue(dataclasses.replace(other, key=tmp_path / "ca.key"), tmp_path, "a", ["localhost"])


def test_check_names_another_agent(files):
    with pytest.raises(LiveError, match="is that of 'agent-3', not of 'agent-5': use agent-5's own files"):
        keys.check(files, "agent-5")


def test_check_names_the_wrong_time(files):
    with pytest.raises(LiveError, match=r"agent-3.pem is expired since 20\d\d-.*: collegium live renew"):
        keys.check(files, "agent-3", NOW + timedelta(days=731))
    with pytest.raises(LiveError, match=r"ca.pem is not valid before 20\d\d-.* set this host's clock right"):
        keys.check(files, "agent-3", NOW - timedelta(days=1))
