// API keys and TLS, as clients and operators meet them.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';

import OpenAI from 'openai';

import { kCapital } from './answers.mjs';
import { removeFolder, runProgram, startService, temporaryFolder } from './service.mjs';
import { waitUntil } from './waiting.mjs';

const folder = temporaryFolder();
let service;

async function addKey(...options) {
  const made = await runProgram(['ctl', 'keys', 'add', '--state', folder, ...options]);
  assert.equal(made.code, 0, made.stderr);
  return made.stdout.trim();
}

function openai(apiKey) {
  return new OpenAI({ apiKey, baseURL: `${service.url}/v1`, maxRetries: 0 });
}

function ask(apiKey) {
  return openai(apiKey).chat.completions.create({
    model: 'krill',
    messages: kCapital,
    max_tokens: 1,
  });
}

function get(where, headers = {}) {
  return fetch(`${service.url}${where}`, { headers });
}

describe('with keys', () => {
  let key;
  before(async () => {
    key = await addKey('--tenant', 'acme');
    service = await startService([], folder);
  });
  after(() => service?.stop());

  test('a valid one is answered, and any other is an AuthenticationError', async () => {
    assert.equal((await ask(key)).choices.length, 1);
    await assert.rejects(ask('sk-nonsense'), OpenAI.AuthenticationError);
    await assert.rejects(ask(`${key.slice(0, -1)}x`), OpenAI.AuthenticationError);
  });

  test('what is refused has the protocol’s shape', async () => {
    const response = await get('/v1/models');
    assert.equal(response.status, 401);
    assert.equal(response.headers.get('www-authenticate'), 'Bearer');
    const { error } = await response.json();
    assert.equal(error.code, 'unauthorized');
    assert.equal((await get('/v1/models', { 'x-api-key': key })).status, 200);
  });

  test('whoever watches over processes needs none', async () => {
    assert.equal((await get('/health')).status, 200);
    assert.equal((await get('/ready')).status, 200);
  });

  test('one that is made or revoked counts without a restart', async () => {
    const late = await addKey('--tenant', 'late');
    await waitUntil('the new key is valid', async () => {
      return (await get('/v1/models', { authorization: `Bearer ${late}` })).status === 200;
    });
    const id = late.split('-')[2];
    const revoked = await runProgram(['ctl', 'keys', 'revoke', id, '--state', folder]);
    assert.equal(revoked.code, 0, revoked.stderr);
    await waitUntil('the key is revoked', async () => {
      return (await get('/v1/models', { authorization: `Bearer ${late}` })).status === 401;
    });
  });

  test('none of them is in the log', () => {
    assert.ok(!service.log.includes(key.split('-')[3]));
  });
});

describe('with a certificate', () => {
  const state = temporaryFolder();
  const certificate = path.join(state, 'cert.pem');
  const config = path.join(state, 'sluice.toml');
  before(async () => {
    execFileSync('openssl', [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'],
      ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '1'],
      ...['-keyout', path.join(state, 'key.pem'), '-out', certificate],
    ], { stdio: 'ignore' });
    writeFileSync(
      config,
      `[gateway]\nlisten = "127.0.0.1:0"\nadmin = "127.0.0.1:0"\n` +
        `tls_certificate = "${certificate}"\ntls_key = "${path.join(state, 'key.pem')}"\n`,
    );
    service = await startService(['--config', config], path.join(state, 'service'));
  });
  after(async () => {
    await service?.stop();
    removeFolder(state);
  });

  test('curl gets a streamed answer over TLS', () => {
    assert.match(service.url, /^https:/);
    const answer = execFileSync('curl', [
      ...['-sS', '--cacert', certificate, `${service.url}/v1/chat/completions`, '-d'],
      JSON.stringify({ model: 'krill', messages: kCapital, stream: true, max_tokens: 3 }),
    ], { encoding: 'utf8' });
    assert.match(answer, /data: \{.*\n\ndata: \[DONE\]\n\n$/s);
  });
});
