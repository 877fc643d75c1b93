"""Certificates of a live network: one authority, one certificate per agent, and a check of an agent's own files.

    ca.pem       the authority's certificate: goes to every host
    ca.key       the authority's key: stays with whoever made the network, and signs further certificates
    agent-3.pem  the certificate of agent-3: goes to its host
    agent-3.key  and its key, readable by its owner only

An agent's common name is its name in the network. Zenoh's access control goes by it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from collegium._util.files import atomic_write
from collegium.errors import InputFileError, LiveError
from collegium.live.transport.base import Tls

NEXT_KEY = "ca-next.key"
CLOCK_SKEW = timedelta(hours=1)  # a certificate made just now must also be valid on a host whose clock is behind

_MOST = 1 << 26  # bytes of what is signed
S = TypeVar("S", bound="Signed")
_NAME = re.compile(r"\w([\w .,:;@+=()'-]{0,62}[\w.)'])?")  # 64 is the longest common name X.509 allows


@dataclass(frozen=True)
class Authority:
    """Where the authority's certificate and key are."""

    certificate: Path
    key: Path


def check_name(name: str, what: str = "an agent's name") -> str:
    """The name itself, if it can be a file name, a common name and a part of a Zenoh key."""
    if not _NAME.fullmatch(name):
        raise LiveError(
            f"{what} must be 1 to 64 letters, digits, blanks and signs of _.,:;@+=()'- "
            f"and begin with a letter or digit; got {name!r}"
        )
    return name


def create_authority(folder: Path, network: str, *, days: int = 3650, start: datetime | None = None) -> Authority:
    """Make `ca.pem` and `ca.key` in the folder; files that are there already are never replaced."""
    check_name(network, "a network's name")
    start = start or datetime.now(UTC)
    files = Authority(folder / "ca.pem", folder / "ca.key")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{network} authority"[:64])])
    certificate = (
        _builder(name, name, key.public_key(), start, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write_pair(folder, files.certificate, certificate, files.key, key, replace=False)
    return files


def issue(
    authority: Authority,
    folder: Path,
    name: str,
    hosts: Sequence[str],
    *,
    days: int = 730,
    start: datetime | None = None,
    stem: str | None = None,
    replace: bool = False,
) -> Tls:
    """Make `<name>.pem` and `<name>.key` in the folder (or `<stem>.pem`, if given), signed by the authority.

    Arguments:
        hosts: where the agent can be reached: IP addresses or DNS names. Its neighbours compare them with the endpoint
            they connect to.
        days: how long the certificate is valid, at most as long as the authority's own.
        replace: whether files that are there already may be replaced.
    """
    check_name(name)
    if not hosts:
        raise LiveError(f"the certificate of {name} must name at least one host")
    ca, ca_key = _certificate(authority.certificate, "the authority"), private_key(authority.key, "the authority")
    if ca.public_key() != ca_key.public_key():
        raise LiveError(
            f"the key {authority.key} does not belong to the authority's certificate {authority.certificate}"
        )
    start = start or datetime.now(UTC)
    if not ca.not_valid_before_utc <= start + CLOCK_SKEW or start >= ca.not_valid_after_utc:
        raise LiveError(f"the authority's certificate {authority.certificate} is {_age(ca, start)}: make a new network")
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    ca_public = ca_key.public_key()
    certificate = (
        _builder(subject, ca.subject, key.public_key(), start, days, latest=ca.not_valid_after_utc)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.SubjectAlternativeName([_host(host) for host in dict.fromkeys(hosts)]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_public), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    stem = stem or name
    files = Tls(authority.certificate, folder / f"{stem}.pem", folder / f"{stem}.key")
    _write_pair(folder, files.certificate, certificate, files.key, key, replace=replace)
    return files


def check(tls: Tls, name: str, now: datetime | None = None) -> datetime:
    """When the certificate ends, if the agent can use its files; otherwise a LiveError names what is wrong."""
    now = now or datetime.now(UTC)
    authorities = _certificates(tls.ca, "the authority")
    certificate, key = _certificate(tls.certificate, name), private_key(tls.key, name)
    if certificate.public_key() != key.public_key():
        raise LiveError(
            f"the key {tls.key} does not belong to the certificate {tls.certificate}: "
            f"copy both files of {name} again, or issue a new pair"
        )
    ca = next((one for one in authorities if _signed_by(certificate, one)), None)
    if ca is None:
        raise LiveError(
            f"the certificate {tls.certificate} was signed by another authority than {tls.ca}: "
            f"issue one for {name} with this network's ca.key"
        )
    other = common_name(certificate)
    if other != name:
        raise LiveError(
            f"the certificate {tls.certificate} is that of {other!r}, not of {name!r}: use {name}'s own files"
        )
    for who, path, one in (("authority's ", tls.ca, ca), ("", tls.certificate, certificate)):
        age = _age(one, now)
        if age:
            raise LiveError(
                f"the {who}certificate {path} is {age}: collegium live renew, or set this host's clock right"
            )
    return min(certificate.not_valid_after_utc, ca.not_valid_after_utc)


class Signed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an authority signs: all of it but `signature`, a last field in hexadecimal."""

    network: str


def signed(authority: Authority, what: S) -> tuple[S, bytes]:
    """It with the authority's signature, and as JSON."""
    signature = private_key(authority.key, "the authority").sign(_content(what), ec.ECDSA(hashes.SHA256()))
    what = msgspec.structs.replace(what, signature=signature.hex())
    return what, msgspec.json.encode(what)


def read_signed(kind: type[S], content: bytes, ca: Path, network: str, name: str) -> S:
    """What JSON says, if it is of this network, and one of the authorities in a file has signed it."""
    try:
        found = msgspec.json.decode(content[:_MOST], type=kind)
        is_signed = any(_has_signed(one, found) for one in _certificates(ca, "the authority"))
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise LiveError(f"{name} cannot be read: {problem}") from None
    if not is_signed:
        raise LiveError(f"{name} is not signed by this network's authority")
    if found.network != network:
        raise LiveError(f"{name} is of network {found.network}, not of {network}")
    return found


def _content(what: Signed) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(what, signature=""))


def _has_signed(certificate: x509.Certificate, what: Signed) -> bool:
    key, signature = certificate.public_key(), what.signature  # type: ignore[attr-defined]
    assert isinstance(key, ec.EllipticCurvePublicKey)
    try:
        key.verify(bytes.fromhex(signature), _content(what), ec.ECDSA(hashes.SHA256()))
    except (InvalidSignature, ValueError):  # ValueError: no hexadecimal number
        return False
    return True


def next_authority(authority: Authority, network: str) -> str:
    """Make the authority that is to follow, `ca-next.key`; the certificates of both, the new one's first."""
    following = authority.key.with_name(NEXT_KEY)
    with TemporaryDirectory() as scratch:
        made = create_authority(Path(scratch), network)
        old = _certificate(authority.certificate, "the authority").public_bytes(serialization.Encoding.PEM)
        with atomic_write(following, sync=True, mode=0o600) as file:
            file.write(made.key.read_bytes())
        return (made.certificate.read_bytes() + old).decode()


def take_over(authority: Authority) -> None:
    """From now on the authority that is to follow signs, if there is one; the key before it is kept."""
    following = authority.key.with_name(NEXT_KEY)
    if following.exists():
        authority.key.replace(authority.key.with_name("ca-before.key"))
        following.replace(authority.key)


def serial(path: Path) -> str:
    """The serial number of the certificate in a file, in hexadecimal."""
    return f"{_certificate(path, 'the agent').serial_number:x}"


def warn_before(tls: Tls) -> float:
    """How many seconds before its end a certificate is worth a warning: a third of its life, 30 days at most."""
    certificate = _certificate(tls.certificate, "the agent")
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return min(life.total_seconds() / 3, 30 * 86400.0)


def common_name(certificate: x509.Certificate) -> str:
    """The agent a certificate is for, empty if it names none."""
    found = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else ""


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    start: datetime,
    days: int,
    latest: datetime | None = None,
) -> x509.CertificateBuilder:
    if days < 1:
        raise LiveError(f"a certificate must be valid for at least 1 day; got {days}")
    end = start + timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - CLOCK_SKEW)
        .not_valid_after(min(end, latest) if latest else end)
    )


def _usage(**allowed: bool) -> x509.KeyUsage:
    signs = ("digital_signature", "content_commitment", "key_cert_sign", "crl_sign")
    enciphers = ("key_encipherment", "data_encipherment", "key_agreement", "encipher_only", "decipher_only")
    return x509.KeyUsage(**{name: allowed.get(name, False) for name in (*signs, *enciphers)})


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        pass
    if not host.isascii() or not re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?", host):
        raise LiveError(f"a host must be an IP address or a DNS name; got {host!r}")
    return x509.DNSName(host)


def _write_pair(
    folder: Path,
    where: Path,
    certificate: x509.Certificate,
    key_path: Path,
    key: ec.EllipticCurvePrivateKey,
    replace: bool,
) -> None:
    form = serialization.Encoding.PEM
    secret = key.private_bytes(form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    there = [path for path in (where, key_path) if path.exists()]
    if there and not replace:
        raise LiveError(f"{there[0]} is there already: move it away, or choose another folder")
    try:
        for path, content, mode in ((key_path, secret, 0o600), (where, certificate.public_bytes(form), 0o644)):
            with atomic_write(path, parents=True, sync=True, mode=mode) as file:
                file.write(content)
    except InputFileError as problem:
        raise LiveError(f"cannot write into the folder {folder}: {problem}") from None


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise LiveError(f"{what} is missing: there is no file {path}") from None
    except OSError as problem:
        raise LiveError(f"{what} cannot be read: {path}: {problem.strerror or problem}") from None


def _certificate(path: Path, whose: str) -> x509.Certificate:
    return _certificates(path, whose)[0]


def _certificates(path: Path, whose: str) -> list[x509.Certificate]:
    """Of a file; an authority's has two of them while another takes over, the new one's first."""
    content = _read(path, f"the certificate of {whose}")
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError:
        raise LiveError(f"{path} is not a certificate in PEM form") from None


def private_key(path: Path, whose: str) -> ec.EllipticCurvePrivateKey:
    """The key in a file."""
    content = _read(path, f"the key of {whose}")
    try:
        key = serialization.load_pem_private_key(content, password=None)
    except (ValueError, TypeError):  # TypeError: it has a password
        raise LiveError(f"{path} is not a private key in PEM form without a password") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise LiveError(f"{path} is not an elliptic curve key, as Collegium makes them: issue a new pair")
    return key


def _signed_by(certificate: x509.Certificate, ca: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _age(certificate: x509.Certificate, now: datetime) -> str:
    if now < certificate.not_valid_before_utc:
        return f"not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
    if now > certificate.not_valid_after_utc:
        return f"expired since {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    return ""
