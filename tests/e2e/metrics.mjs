// Prometheus' text format, read back.

const kSample = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/;
const kLabel = /(\w+)="((?:[^"\\]|\\.)*)"/g;

export class Metrics {
  #samples = [];

  constructor(text) {
    for (const line of text.split('\n')) {
      const match = line.startsWith('#') ? null : kSample.exec(line);
      if (!match) continue;
      const labels = {};
      for (const [, name, value] of (match[2] ?? '').matchAll(kLabel)) labels[name] = value;
      this.#samples.push({ name: match[1], labels, value: Number(match[3]) });
    }
  }

  /** The sum over all series of `name` that have these labels; 0 if there is none. */
  value(name, labels = {}) {
    const wanted = Object.entries(labels);
    return this.#samples
      .filter((sample) => sample.name === name)
      .filter((sample) => wanted.every(([label, value]) => sample.labels[label] === value))
      .reduce((sum, sample) => sum + sample.value, 0);
  }

  has(name) {
    return this.#samples.some((sample) => sample.name === name);
  }
}

export async function readMetrics(url) {
  const response = await fetch(`${url}/metrics`);
  if (!response.ok) throw new Error(`${url}/metrics answered ${response.status}`);
  return new Metrics(await response.text());
}
