/** Recipes of Tinker's cookbook, unchanged: URL, key and working directory are those of the test. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import t from 'tap';
import { tarOf } from '../../../formats/testing/models.js';
import { projectRoot } from '../../../platform/process/root.js';
import { pythonWith } from '../../support/python.js';
import { cleanEnvironment, startStack } from '../../support/stack.js';

const PREPARE = join(projectRoot(), 'test', 'tinker', 'cookbook', 'prepare.py');
const MODEL = 'Qwen/Qwen3.5-9B-Base';
const RECIPES = {
  sl: 'tinker_cookbook.recipes.sl_loop',
  rl: 'tinker_cookbook.recipes.rl_loop',
  dpo: 'tinker_cookbook.recipes.preference.dpo.train',
};
const found = pythonWith('tinker', ...Object.values(RECIPES));
const skip = 'missing' in found ? found.missing : false;

const SL_STEPS = 32;
const SAVE_EVERY = 5;
const SL = {
  batch_size: 16,
  max_length: 512,
  lora_rank: 16,
  learning_rate: 1e-2,
  save_every: SAVE_EVERY,
};

type Line = Record<string, number>;

function linesOf(file: string): Line[] {
  try {
    const complete = readFileSync(file, 'utf8').split('\n').slice(0, -1);
    return complete.map((line) => JSON.parse(line));
  } catch {
    return [];
  }
}

t.test('recipes of the cookbook', { skip, timeout: 1_800_000 }, async (t) => {
  if ('missing' in found) return;
  const { python } = found;
  const stack = await startStack(t, { env: { ZEROFLEET_SLOTS: '8', ZEROFLEET_THREADS_PER_RANK: '1' } });
  const { client } = stack;
  const folder = t.testdir();
  const env = {
    ...cleanEnvironment(),
    TINKER_BASE_URL: `${client.options.baseUrl}/tinker`,
    TINKER_API_KEY: `tml-${client.options.apiKey}`,
    TINKER_TELEMETRY: '0',
    HF_HUB_OFFLINE: '1',
    HF_HOME: join(folder, 'cache'),
  };
  await promisify(execFile)(python, ['-B', PREPARE, folder], { env });
  const files = readdirSync(join(folder, MODEL));
  const contents = files.map((name) => [name, readFileSync(join(folder, MODEL, name))] as const);
  await client.models.create(MODEL, await tarOf(contents));

  const argumentsOf = (recipe: keyof typeof RECIPES, log: string, settings: object) => {
    const pairs = Object.entries({ ...settings, log_path: join(folder, log) });
    return ['-B', '-m', RECIPES[recipe], ...pairs.map(([name, value]) => `${name}=${value}`)];
  };
  const run = async (recipe: keyof typeof RECIPES, log: string, settings: object): Promise<Line[]> => {
    const args = argumentsOf(recipe, log, settings);
    await promisify(execFile)(python, args, { env, cwd: folder, maxBuffer: 2 ** 26 });
    return linesOf(join(folder, log, 'metrics.jsonl'));
  };
  const lastState = (log: string) =>
    (linesOf(join(folder, log, 'checkpoints.jsonl')) as { state_path?: string }[]).at(-1)?.state_path;

  await t.test('the supervised loop', async (t) => {
    const lines = await run('sl', 'sl', SL);
    const losses = lines.map(({ train_mean_nll: loss }) => loss);
    t.equal(losses.length, SL_STEPS);
    t.ok((losses.at(-1) ?? 99) < 1, `the loss falls: ${losses.join(' ')}`);
    t.strictSame(
      lines.map(({ step }) => step),
      losses.map((_, i) => i),
      "the recipe's own steps",
    );

    const args = argumentsOf('sl', 'killed', SL);
    const process = spawn(python, args, { env, cwd: folder, stdio: 'ignore' });
    const before = await killAfter(process, join(folder, 'killed'));
    t.ok(before < SL_STEPS, `killed after ${before} steps`);
    const again = await run('sl', 'killed', SL);
    t.ok(again.length > SL_STEPS, 'steps after the last checkpoint are repeated');
    t.equal(again.at(-1)?.step, SL_STEPS - 1);
    for (const { step = -1, train_mean_nll } of again)
      t.equal(train_mean_nll, losses[step], `step ${step}: resumed with warm moments`);
  });

  await t.test('the RL loop', async (t) => {
    const name = JSON.stringify({ name: 'taught', batch: 0, state_path: lastState('sl') });
    mkdirSync(join(folder, 'rl'));
    writeFileSync(join(folder, 'rl', 'checkpoints.jsonl'), `${name}\n`);
    const settings = { batch_size: 8, group_size: 16, max_tokens: 24, learning_rate: 3e-3, max_steps: 12 };
    const lines = await run('rl', 'rl', { ...settings, save_every: SAVE_EVERY });
    const rewards = lines.map((line) => line['reward/total'] ?? Number.NaN);
    t.equal(rewards.length, settings.max_steps);
    t.ok((rewards[0] ?? 1) < 0.4 && (rewards.at(-1) ?? 0) > 0.8, `the reward rises: ${rewards.join(' ')}`);
  });

  await t.test('DPO', async (t) => {
    const settings = { dataset: 'hhh', load_checkpoint_path: lastState('sl'), batch_size: 16 };
    const lines = await run('dpo', 'dpo', { ...settings, max_length: 500, learning_rate: 2e-3 });
    const losses = lines.map(({ dpo_loss: loss }) => loss ?? Number.NaN);
    t.equal(losses.length, 6);
    t.equal(losses[0], Math.fround(Math.LN2), 'the reference is the model at its beginning');
    t.ok((losses.at(-1) ?? 1) < 0.3, `the loss falls: ${losses.join(' ')}`);
    t.ok((lines.at(-1)?.margin ?? 0) > 1);
  });
});

/** Kills a supervised loop after two checkpoints, and returns the steps that it has logged. */
async function killAfter(process: ChildProcess, log: string): Promise<number> {
  const exited = new Promise((resolve) => process.once('exit', resolve));
  const file = join(log, 'metrics.jsonl');
  while (linesOf(file).length < 2 * SAVE_EVERY + 2 && process.exitCode === null) await delay(20);
  process.kill('SIGKILL');
  await exited;
  return linesOf(file).length;
}
