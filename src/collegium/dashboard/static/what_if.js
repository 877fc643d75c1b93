// The form of a what-if: what is to be different, and nothing else.

export class WhatIfForm {
  constructor(form, about, onChange) {
    Object.assign(this, { form, about, onChange });
    const { topology, rounds } = form.elements;
    for (const name of about.topologies) topology.append(new Option(name, name));
    for (const name of about.rules ?? []) this.form.elements.rule.append(new Option(name, name));
    rounds.value = rounds.defaultValue = about.rounds;
    const faulty = form.querySelector("#faulty");
    about.agents.forEach((name, k) => {
      const box = Object.assign(document.createElement("input"), { type: "checkbox", name: "faulty", value: k });
      const label = Object.assign(document.createElement("label"), { title: name });
      label.append(box, String(k));
      box.setAttribute("aria-label", `Corrupt agent ${k}, ${name}`);
      faulty.append(label);
    });
    let timer;
    form.addEventListener("input", () => {
      clearTimeout(timer);
      this.arrange();
      timer = setTimeout(onChange, 120);
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    this.arrange();
  }

  // Only the settings that mean something are there; a fault begins with the agent that is chosen.
  arrange() {
    const { rule, fault } = this.form.elements;
    for (const part of this.form.querySelectorAll("[data-for]"))
      part.hidden = !part.dataset.for.split(" ").some((name) => name === rule.value || name === fault.value);
    if (fault.value !== "none" && !this.faulty().length) this.boxes()[this.chosen ?? 0].checked = true;
  }

  boxes() { return [...this.form.querySelectorAll("[name=faulty]")]; }
  faulty() { return this.boxes().filter((box) => box.checked).map((box) => Number(box.value)); }

  changes() {
    const values = this.form.elements, changes = {};
    for (const name of ["topology", "weights", "rule"]) if (values[name].value !== "given") changes[name] = values[name].value;
    const number = (name) => values[name].value !== "" && (changes[name] = Number(values[name].value));
    if (changes.rule === "delta-trigger") number("threshold");
    if (changes.rule === "label-stability") number("patience"), number("confidence");
    number("bits");
    number("seed");
    if (Number(values.rounds.value) !== this.about.rounds) number("rounds");
    if (values.fault.value !== "none" && this.faulty().length) {
      Object.assign(changes, { fault: values.fault.value, faulty: this.faulty() });
      if (values.fault.value !== "stuck") number("strength");
    }
    return changes;
  }

  reset() {
    this.form.reset();
    this.arrange();
    this.onChange();
  }
}
