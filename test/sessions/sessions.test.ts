/** Training sessions: calls over HTTP, with real ranks. */
import t from 'tap';
import type { Call, CallResult } from '../../contracts/index.js';
import { killRank } from '../support/processes.js';
import { ClientSession, smallSession, textPass, textRows, UPDATE } from '../support/sessions.js';
import { startStack } from '../support/stack.js';

const POLL = { interval_ms: 20 };

const SAMPLE: Call = {
  type: 'sample',
  prompts: textRows(3, 2).map(({ tokens }) => tokens),
  n: 2,
  max_tokens: 6,
  temperature: 0.8,
  seed: 5,
};

/** Passes of several sizes, fewer leaves than ranks among them, and everything else that has a result. */
function script(): Call[] {
  const rows = textRows(20, 4).map((row) => ({
    ...row,
    log_probs: row.tokens.map((_, i) => -1 - (i % 3)),
    advantages: row.tokens.map((_, i) => (i % 5) - 2),
  }));
  return [
    textPass(0, 7),
    textPass(7, 1),
    UPDATE,
    SAMPLE,
    { type: 'forward_backward', loss: { type: 'ppo' }, rows },
    UPDATE,
    { ...textPass(2, 3), type: 'forward' } as Call,
    { type: 'forward_backward', loss: { type: 'dpo' }, rows: rows.map(({ advantages: _, ...row }) => row) },
    { ...UPDATE, weight_decay: 0.1, betas: [0.8, 0.9] } as Call,
    textPass(30, 10),
    UPDATE,
  ];
}

const digestOf = (result: CallResult | undefined) =>
  result !== undefined && 'state_digest' in result ? result.state_digest : JSON.stringify(result);

t.test('sessions', async (t) => {
  const stack = await startStack(t, { env: { ZEROFLEET_SLOTS: '3', ZEROFLEET_THREADS_PER_RANK: '1' } });
  const { client } = stack;
  const begin = (name: string, ranks: number) => ClientSession.create(client, smallSession(name, ranks));
  const expected: CallResult[] = [];

  await t.test('the same results on one, two and three ranks', async (t) => {
    for (const ranks of [1, 2, 3]) {
      const session = await begin(`${ranks} ranks`, ranks);
      const results = await session.run(...script());
      t.notOk(results.find((result) => 'error' in result));
      if (ranks === 1) expected.push(...results);
      else t.strictSame(results, expected, `${ranks} ranks`);
      const [saved, ended] = await session.run({ type: 'save_state' }, { type: 'finish' });
      t.strictSame(saved, ended);
      const job = await client.jobs.until(session.id, () => false);
      t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
      t.equal(job.export?.state_digest, digestOf(expected.at(-1)));
      t.equal(job.progress.step, 4);
    }
    const digests = expected.filter((result) => 'state_digest' in result).map(digestOf);
    t.equal(new Set(digests).size, 4, 'every update changes the state');
  });

  await t.test('a killed rank, a resize and a pause change no result', async (t) => {
    const session = await begin('disturbed', 2);
    const results: CallResult[] = [];
    for (const [i, call] of script().entries()) {
      if (i === 5) killRank(stack.pid, 0);
      const number = await session.append(call);
      if (i === 2) {
        await client.jobs.resize(session.id, 3);
        await client.jobs.until(session.id, ({ world_size }) => world_size === 3, POLL);
      }
      if (i === 8) {
        await client.jobs.pause(session.id);
        await client.jobs.until(session.id, ({ state }) => state === 'paused', POLL);
        await client.jobs.resume(session.id, { ranks: 1 });
      }
      results.push(await session.result(number));
    }
    t.strictSame(results, expected);
    await client.jobs.cancel(session.id);
    await client.jobs.until(session.id, ({ state }) => state === 'cancelled', POLL);
  });

  await t.test('samples have the log-probabilities of forward', async (t) => {
    const session = await begin('samples', 2);
    const [, , sampled] = await session.run(textPass(0, 4), UPDATE, SAMPLE);
    const samples = sampled && 'samples' in sampled ? sampled.samples : [];
    t.equal(samples.length, 4);
    t.notSame(samples[0]?.tokens, samples[1]?.tokens, 'samples of one prompt differ');
    const prompts = 'prompts' in SAMPLE ? SAMPLE.prompts.flatMap((prompt) => [prompt, prompt]) : [];
    const rows = samples.map(({ tokens }, i) => {
      const all = [...(prompts[i] ?? []), ...tokens];
      return { tokens: all.slice(0, -1), targets: all.slice(1) };
    });
    const [passed] = await session.run({ type: 'forward', loss: { type: 'cross_entropy' }, rows });
    const logProbs = passed && 'log_probs' in passed ? passed.log_probs : [];
    for (const [i, { log_probs }] of samples.entries())
      t.strictSame(logProbs[i]?.slice(-log_probs.length), log_probs);
    await client.jobs.cancel(session.id);
  });

  await t.test('load_state continues with the bits of an uninterrupted session', async (t) => {
    const session = await begin('states', 2);
    const more = [textPass(10, 5), UPDATE, textPass(15, 2), UPDATE];
    const [, , saved] = await session.run(textPass(0, 6), UPDATE, { type: 'save_state' });
    const checkpoint = saved && 'checkpoint' in saved ? saved.checkpoint : '';
    const uninterrupted = await session.run(...more);
    const load = { type: 'load_state', checkpoint } as const;
    const [, ...warm] = await session.run({ ...load, optimizer: true }, ...more);
    t.equal(digestOf(warm.at(-1)), digestOf(uninterrupted.at(-1)));
    const [, ...cold] = await session.run({ ...load, optimizer: false }, ...more);
    t.not(digestOf(cold.at(-1)), digestOf(uninterrupted.at(-1)), 'a cold optimizer takes other steps');
    const missing = { ...load, checkpoint: 'ckpt_01J00000000000000000000000' };
    await t.rejects(session.append(missing), { code: 'checkpoint_not_found' });
    await client.jobs.cancel(session.id);
  });
});
