"""The files in `deploy/`: understood by what they are for, and in agreement with the program."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[1] / "deploy"
UNIT = DEPLOY / "collegium-agent@.service"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not there")
def test_systemd_understands_the_unit(tmp_path):
    """Whatever systemd does not know, it says; the program and the user need not be on this machine."""
    text = (
        UNIT.read_text().replace("/opt/collegium/bin/collegium live agent", "/bin/true").replace("User=collegium", "")
    )
    unit = tmp_path / "collegium-agent@0.service"
    unit.write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, timeout=60)
    about_it = [line for line in done.stderr.splitlines() if "collegium-agent" in line]
    assert about_it == []
    unit.write_text(text.replace("RestartSec=2", "RestartSecs=2"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, timeout=60)
    assert "RestartSecs" in done.stderr  # a mistake would be seen


def test_the_unit_lets_an_agent_drain():
    from collegium._serving.limits import ServiceSettings

    seconds = int(re.search(r"^TimeoutStopSec=(\d+)$", UNIT.read_text(), re.MULTILINE)[1])
    assert seconds >= ServiceSettings().grace_seconds + 10


# What of Kubernetes' objects is used here, by name; anything else is a slip of the pen.
PORT = {"name": str, "port": int}
OBJECTS = {
    "Service": {
        "clusterIP": str, "publishNotReadyAddresses": bool, "selector": dict, "ports": [PORT],
    },
    "Deployment": {
        "replicas": int, "strategy": {"type": str}, "selector": {"matchLabels": dict},
        "template": {"metadata": {"labels": dict}, "spec": {
            "automountServiceAccountToken": bool, "terminationGracePeriodSeconds": int,
            "securityContext": {
                "runAsNonRoot": bool, "runAsUser": int, "fsGroup": int, "seccompProfile": {"type": str},
            },
            "containers": [{
                "name": str, "image": str, "imagePullPolicy": str, "args": list,
                "ports": [{"name": str, "containerPort": int}],
                "livenessProbe": {"httpGet": {"path": str, "port": str, "scheme": str}, "initialDelaySeconds": int},
                "readinessProbe": {"httpGet": {"path": str, "port": str, "scheme": str}},
                "resources": {"requests": dict, "limits": dict},
                "securityContext": {
                    "allowPrivilegeEscalation": bool, "readOnlyRootFilesystem": bool, "capabilities": {"drop": list},
                },
                "volumeMounts": [{"name": str, "mountPath": str, "readOnly": bool}],
            }],
            "volumes": [{"name": str, "secret": {"secretName": str, "defaultMode": int}}],
        }},
    },
}  # fmt: skip


def problems(value, schema, where):
    if isinstance(schema, type):
        return [] if isinstance(value, schema) else [f"{where} is {value!r}, not {schema.__name__}"]
    if isinstance(schema, list):
        return [p for k, one in enumerate(value) for p in problems(one, schema[0], f"{where}[{k}]")]
    unknown = [f"{where} has no {name}" for name in value if name not in schema]
    return unknown + [
        p for name, one in value.items() if name in schema for p in problems(one, schema[name], f"{where}.{name}")
    ]


def test_the_manifest_is_what_kubernetes_reads():
    yaml = pytest.importorskip("yaml")
    found = {one["kind"]: one for one in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())}
    assert set(found) == set(OBJECTS)
    assert [found[kind]["apiVersion"] for kind in ("Service", "Deployment")] == ["v1", "apps/v1"]
    for kind, one in found.items():
        assert problems(one["spec"], OBJECTS[kind], kind) == []
    service, deployment = found["Service"]["spec"], found["Deployment"]["spec"]
    pod = deployment["template"]
    assert service["selector"] == deployment["selector"]["matchLabels"] == pod["metadata"]["labels"]
    container = pod["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert {port["name"]: port["port"] for port in service["ports"]} == ports
    assert container["livenessProbe"]["httpGet"]["port"] in ports
    assert [mount["name"] for mount in container["volumeMounts"]] == [one["name"] for one in pod["spec"]["volumes"]]
    assert container["args"][0].startswith(container["volumeMounts"][0]["mountPath"])
    broken = {**deployment, "replica": 1}
    assert problems(broken, OBJECTS["Deployment"], "Deployment") == ["Deployment has no replica"]


def test_the_container_file_has_only_what_such_files_have():
    text = (DEPLOY / "Containerfile").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith(("#", " "))]
    known = {"FROM", "RUN", "COPY", "USER", "STOPSIGNAL", "ENTRYPOINT", "CMD"}
    assert {line.split()[0] for line in lines} <= known
    assert lines[0].startswith("FROM ")
    assert not any("USER root" in line or "USER 0" in line for line in lines)
    assert 'ENTRYPOINT ["collegium", "live", "agent"]' in lines


def test_a_container_is_made_from_the_sources_alone():
    """The whole clone would bring its environment, its history, and the keys of networks that were made in it."""
    root = DEPLOY.parent
    patterns = [line for line in (root / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert patterns[0] == "*"
    given = {pattern[1:] for pattern in patterns if pattern.startswith("!")}
    assert all((root / name).exists() for name in given)
    project = tomllib.loads((root / "pyproject.toml").read_text())
    needed = {"pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]}
    needed |= {path.split("/")[0] for path in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]}
    needed |= set(re.findall(r"/src/(\S+)", (DEPLOY / "Containerfile").read_text()))
    assert given == needed
