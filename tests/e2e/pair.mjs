// A gateway in front of two pools, stable and candidate, with its own state and records. The pools are
// real engines of the shipped program, with a fault planted in one of them or not, or upstreams that
// a test scripts.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';

import { readMetrics } from './metrics.mjs';
import { removeFolder, runProgram, startProgram, temporaryFolder } from './service.mjs';
import { seconds, waitUntil } from './waiting.mjs';

export const kNativePools = '[[pool]]\nname = "stable"\n[[pool]]\nname = "candidate"\n';
export const kPlan = '[plan]\nstable = "stable"\n';
export const shadow = (share = 1, pool = 'candidate') =>
  `[[plan.shadow]]\npool = "${pool}"\nshare = ${share}\nmax_concurrent = 64\n`;
export const split = (weight, lease = '1h') =>
  `[[plan.split]]\npool = "candidate"\nweight = ${weight}\nlease = "${lease}"\n`;
export const guard = (metric, limit, samples = 20) =>
  `[[plan.guard]]\npool = "candidate"\nmetric = "${metric}"\n${limit}\nmin_samples = ${samples}\nwindow = "5m"\n`;

/** An engine alone; `faults` as SLUICE_FAULTS has them. */
export function startEngine(faults = '', args = ['--port', '0']) {
  return startProgram(['engine', '--threads', '1', '--json', ...args], { SLUICE_FAULTS: faults });
}

/** An OpenAI-compatible server that answers each chat with the message that `answer` makes of it. */
export async function startUpstream(answer) {
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (part) => (body += part));
    request.on('end', () => {
      response.setHeader('content-type', 'application/json');
      if (request.url === '/v1/models') return response.end('{"object":"list","data":[]}');
      const message = { role: 'assistant', content: null, ...answer(JSON.parse(body)) };
      const finish_reason = message.tool_calls ? 'tool_calls' : 'stop';
      return response.end(
        JSON.stringify({
          id: 'x',
          object: 'chat.completion',
          model: 'krill',
          choices: [{ index: 0, message, finish_reason }],
          usage: { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 },
        }),
      );
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}/v1`, close: () => server.close() };
}

export class Pair {
  #workers;
  #asked = 0;

  /** `workers`: URLs of native engines by pool. */
  constructor(config, workers = {}) {
    this.folder = temporaryFolder();
    this.file = path.join(this.folder, 'sluice.toml');
    this.#workers = Object.entries(workers).flatMap(([pool, url]) => ['--worker', `${pool}=${url}`]);
    this.configure(config);
  }

  configure(config) {
    const addresses = '[gateway]\nlisten = "127.0.0.1:0"\nadmin = "127.0.0.1:0"\n';
    writeFileSync(this.file, addresses + config);
  }

  async start() {
    const args = ['gateway', '--config', this.file, '--state', this.folder, '--json'];
    args.push('--records', path.join(this.folder, 'records'), ...this.#workers);
    const { program, ready } = await startProgram(args, {});
    Object.assign(this, { program, url: ready.url, admin: ready.admin });
    await waitUntil('both pools are ready', async () =>
      (await this.status()).pools.every((pool) => pool.ready));
    return this;
  }

  async kill() {
    this.program?.kill('SIGKILL');
    await this.program?.ended;
  }
  async remove() {
    await this.kill();
    removeFolder(this.folder);
  }

  async status() {
    return (await fetch(`${this.admin}/admin/status`)).json();
  }
  async dispatched(pool) {
    return (await this.status()).pools.find(({ name }) => name === pool).dispatched_total;
  }
  async shadows(result) {
    return (await readMetrics(this.admin)).value('sluice_shadow_total', { result });
  }
  async records(query = '') {
    const text = await (await fetch(`${this.admin}/admin/records?since=1h${query}`)).text();
    return text.split('\n').filter(Boolean).map((line) => JSON.parse(line));
  }
  audit() {
    const text = readFileSync(path.join(this.folder, 'audit.jsonl'), 'utf8');
    return text.split('\n').filter(Boolean).map((line) => JSON.parse(line));
  }

  /** Runs `sluice ARGS --url ADMIN`. */
  async sluice(...args) {
    const { code, stdout, stderr } = await runProgram([...args, '--url', this.admin]);
    return { code, text: stdout + stderr };
  }
  async card() {
    const { code, text } = await this.sluice(
      'card', '--baseline', 'stable', '--candidate', 'candidate', '--since', '1h',
      '--min-samples', '20', '--json',
    );
    assert.equal(code, 0, text);
    return JSON.parse(text);
  }
  /** The candidate's row of the card for requests of this kind, once `holds` is true of it. */
  cardRow(kind, holds) {
    return waitUntil(`the card's row of ${kind} shows it`, async () => {
      const { rows } = await this.card();
      const row = rows.find((each) => each.kind === kind && each.pool === 'candidate');
      return row && holds(row) ? row : null;
    });
  }

  chat(extra = {}, headers = {}) {
    return fetch(`${this.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({
        model: 'krill',
        max_tokens: 12,
        messages: [{ role: 'user', content: `Tell me story ${(this.#asked += 1)}.` }],
        ...extra,
      }),
    });
  }
  /** The pool that answered. */
  async ask(extra = {}, headers = {}) {
    const response = await this.chat(extra, headers);
    const body = await response.text();
    assert.equal(response.status, 200, body);
    return response.headers.get('x-sluice-pool');
  }
  /** `count` requests, `width` at a time; how many each pool answered. */
  async askMany(count, width, extra = {}) {
    const answered = {};
    let left = count;
    const one = async () => {
      while (left > 0) {
        left -= 1;
        const pool = await this.ask(extra);
        answered[pool] = (answered[pool] ?? 0) + 1;
      }
    };
    await Promise.all(Array.from({ length: width }, one));
    return answered;
  }

  /** Asks, a few at a time, until the plan was rolled back; the reason. */
  rolledBack(extra = {}) {
    return waitUntil(
      'the guard rolls back',
      async () => {
        await this.askMany(8, 8, extra);
        const { plan } = await this.status();
        return plan.latched ? plan.reason : null;
      },
      seconds(90),
    );
  }
}

/** Runs `use` with a gateway in front of two engines, the candidate with `faults`. */
export async function withPair({ config, stable, faults = '' }, use) {
  const candidate = await startEngine(faults);
  const pair = new Pair(kNativePools + config, {
    stable: stable.ready.url,
    candidate: candidate.ready.url,
  });
  try {
    await use(await pair.start(), candidate);
  } finally {
    await pair.remove();
    candidate.program.kill('SIGKILL');
  }
}

// ---- What a fault must lead to --------------------------------------------------------------------

/** Rows of copies that were compared and differ. */
export async function differing(pair) {
  const copies = await pair.records('&role=shadow');
  return copies.filter(({ comparison }) => comparison?.differs);
}

/** It is rolled back by itself for this reason, and whoever asks is told so. */
export async function sawRollback(pair, reason, extra = {}) {
  const why = await pair.rolledBack(extra);
  assert.match(why, reason);
  const entry = pair.audit().find(({ what }) => what === 'rollback');
  assert.match(entry.who, /^(guard|breaker)$/);
  assert.equal(entry.why, why);
  const { text } = await pair.sluice('ctl', 'status');
  assert.ok(text.includes('ROLLED BACK') && text.includes(why), text);
}

export const worse = ({ verdict }) => verdict === 'worse';
/** The verdict of one metric in a row of the card. */
export const judged = (row, metric) => row.judgements.find((each) => each.metric === metric)?.verdict;
