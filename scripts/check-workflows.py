#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold GitHub workflow files to what can be said of them without GitHub.

usage: scripts/check-workflows.py FILE...    (needs PyYAML)

Keys are known ones, steps only call scripts/setup and jobs of scripts/ci, actions are the official
ones by major version, rights are the least, nothing runs without a time limit.
exit: 0 nothing to say, 1 findings (one a line), 2 bad usage, 77 no PyYAML
"""
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

# What may stand in a mapping, by what it describes. A key that GitHub does not know makes it reject the file.
KEYS = {
    "workflow": {"name", "on", "permissions", "concurrency", "jobs"},
    "on": {"pull_request", "schedule", "workflow_dispatch"},
    "concurrency": {"group", "cancel-in-progress"},
    "job": {"name", "runs-on", "timeout-minutes", "strategy", "steps"},
    "strategy": {"fail-fast", "matrix"},
    "matrix": {"job"},
    "step": {"uses", "run", "with", "if"},
    "permissions": {"contents"},
}
NEEDED = {
    "workflow": {"name", "on", "permissions", "concurrency", "jobs"},
    "job": {"runs-on", "timeout-minutes", "steps"},
}
ACTIONS = {
    "actions/checkout": {"fetch-depth", "persist-credentials"},
    "actions/upload-artifact": {"name", "path", "if-no-files-found"},
    "actions/cache/restore": {"path", "key", "restore-keys"},
    "actions/cache/save": {"path", "key"},
}
LONGEST = 360  # minutes that GitHub gives a job

findings = []


def say(where, what):
    findings.append(f"{where}: {what}")


def mapping(where, kind, value):
    """The mapping itself, or an empty one after a finding."""
    if not isinstance(value, dict):
        say(where, f"{kind} must be a mapping")
        return {}
    for key in value:
        if key not in KEYS[kind]:
            say(where, f"unknown key '{key}' in {kind}")
    for key in sorted(NEEDED.get(kind, set()) - set(value)):
        say(where, f"{kind} lacks '{key}'")
    return value


def known():
    """Jobs of scripts/ci, presets of CMake, steps of scripts/test."""
    listed = subprocess.run([f"{ROOT}/scripts/ci", "--list"], check=True, capture_output=True, text=True).stdout
    with open(f"{ROOT}/CMakePresets.json", encoding="utf-8") as file:
        presets = {p["name"] for p in json.load(file)["configurePresets"] if not p.get("hidden")}
    with open(f"{ROOT}/scripts/test", encoding="utf-8") as file:
        steps = set(re.findall(r"^step_(\w+)\(\)", file.read(), re.M))
    return {line.split()[0] for line in listed.splitlines()}, presets, steps


def check_names(where, text):
    """Scripts, presets and steps of scripts/test that a text names are there."""
    _, presets, steps = KNOWN
    for script in sorted(set(re.findall(r"\bscripts/[\w.-]+", text))):
        if not os.access(f"{ROOT}/{script}", os.X_OK):
            say(where, f"{script} is no program here")
    for names, what, there in (
        (r"scripts/build((?: +[a-z]\w*)+)", "preset", presets),
        (r"--preset +([a-z]\w*)", "preset", presets),
        (r"scripts/test((?: +[a-z]\w*)+)", "step of scripts/test", steps),
    ):
        for name in " ".join(re.findall(names, text)).split():
            if name not in there:
                say(where, f"'{name}' is no {what}")


def check_run(where, command, matrix):
    """One command, no shell: scripts/setup, or a job of scripts/ci."""
    command = str(command).strip()
    check_names(where, command)
    match = re.fullmatch(r"scripts/ci ([\w-]+|\$\{\{ matrix\.job \}\})", command)
    if not match:
        if command != "scripts/setup":
            say(where, f"'{command}' is neither scripts/setup nor scripts/ci JOB")
        return
    for job in matrix if "matrix" in match[1] else [match[1]]:
        if job not in KNOWN[0]:
            say(where, f"'{job}' is no job of scripts/ci")
    if "matrix" in match[1] and not matrix:
        say(where, "there is no matrix of jobs")


def check_uses(where, step):
    action, _, version = str(step["uses"]).partition("@")
    if action not in ACTIONS:
        say(where, f"action '{action}' is not one of the known ones")
        return
    if not re.fullmatch(r"v[1-9]\d*", version):
        say(where, f"{action}@{version}: a major version is due, as v4")
    inputs = step.get("with", {})
    if not isinstance(inputs, dict):
        say(where, "with must be a mapping")
        return
    for key in inputs:
        if key not in ACTIONS[action]:
            say(where, f"unknown input '{key}' of {action}")
    if action == "actions/checkout" and inputs.get("persist-credentials") is not False:
        say(where, "the checkout keeps its credentials: persist-credentials: false is due")


def check_permissions(where, value):
    for right, level in mapping(where, "permissions", value).items():
        if level not in ("read", "none"):
            say(where, f"permission {right}: {level} is more than is needed")


def check_job(where, job):
    job = mapping(where, "job", job)
    strategy = mapping(where, "strategy", job.get("strategy", {}))
    matrix = mapping(where, "matrix", strategy.get("matrix", {})).get("job", [])
    limit = job.get("timeout-minutes", 1)
    if type(limit) is not int or not 1 <= limit <= LONGEST:
        say(where, f"timeout-minutes: {limit} is not 1 to {LONGEST}")
    if "latest" in str(job.get("runs-on", "")):
        say(where, f"runs-on: {job['runs-on']} is another machine tomorrow")
    steps = job.get("steps")
    if not isinstance(steps, list) or not steps:
        say(where, "has no steps")
        return
    for number, step in enumerate(steps, 1):
        place = f"{where}, step {number}"
        step = mapping(place, "step", step)
        if ("run" in step) == ("uses" in step):
            say(place, "one of run and uses is due")
        elif "run" in step:
            check_run(place, step["run"], matrix)
        else:
            check_uses(place, step)


def check_file(path):
    where = os.path.basename(path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        flow = yaml.safe_load(text)
    except yaml.YAMLError as error:
        say(where, f"is no YAML: {' '.join(str(error).split())}")
        return
    if isinstance(flow, dict) and True in flow:
        flow["on"] = flow.pop(True)  # YAML 1.1 reads the word as a truth value
    flow = mapping(where, "workflow", flow)
    mapping(where, "on", flow.get("on", {}))
    mapping(where, "concurrency", flow.get("concurrency", {}))
    check_permissions(where, flow.get("permissions", {}))
    if re.search(r"\bsecrets\b", text):
        say(where, "names secrets: nothing here needs any")
    check_names(where, text)
    jobs = flow.get("jobs")
    if not isinstance(jobs, dict) or not jobs:
        say(where, "has no jobs")
        return
    for name, job in jobs.items():
        check_job(f"{where}: {name}", job)


if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
    print(__doc__)
    sys.exit(0 if sys.argv[1:] == ["--help"] else 2)
try:
    import yaml
except ImportError:
    print("check-workflows: no PyYAML")
    sys.exit(77)
KNOWN = known()
with open(f"{ROOT}/scripts/ci", encoding="utf-8") as script:
    check_names("scripts/ci", script.read())
for name in sys.argv[1:]:
    check_file(name)
print("\n".join(sorted(set(findings))), end="\n" if findings else "")
sys.exit(1 if findings else 0)
