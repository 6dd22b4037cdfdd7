/**
 * `npm run quickstart`: one job from upload to weights on the embedded stack, and the proof that its interruption
 * changed no bit.
 */
import { createWriteStream, mkdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Zerofleet } from '../../clients/typescript/index.js';
import { type Config, loadConfig } from '../../platform/config/config.js';
import { createLogger } from '../../platform/logging/logging.js';
import { projectRoot } from '../../platform/process/root.js';
import { sampleText } from '../sample/sample-text.js';
import { endSignal, explainStartError } from '../stack/program.js';
import { type Stack, startStack } from '../stack/stack.js';
import { buildCorpus } from './corpus.js';
import { Quickstart, QuickstartError, type QuickstartResult } from './run.js';

const CORPUS_MAX_BYTES = 4_000_000;
const PROMPT = '## Usage\n';
const SAMPLE_BYTES = 300;
/** Exit code of shells for a program ended by Ctrl-C. */
const INTERRUPTED_EXIT_CODE = 130;

const say = (line: string) => process.stdout.write(`${line}\n`);

/** The user's configuration, with any free port and logs in a file, so that the terminal shows the progress. */
function quickstartConfig(): Config {
  return loadConfig({ ...process.env, ZEROFLEET_PORT: process.env.ZEROFLEET_PORT || '0' });
}

function showProof({ main, reference }: QuickstartResult): void {
  const [first, second] = [main.export?.state_digest, reference.export?.state_digest];
  say('\nDigests of the training state after the last step');
  say(`  2 ranks, paused, 3 ranks   ${first}`);
  say(`  1 rank, uninterrupted      ${second}`);
  if (first !== second || !first) throw new QuickstartError('the digests differ: please report this');
  say('  equal: the same training, bit for bit');
}

async function showSample({ main }: QuickstartResult, objectsDir: string): Promise<void> {
  const modelDir = join(objectsDir, main.export?.prefix ?? '');
  const text = await sampleText(modelDir, {
    prompt: PROMPT,
    max_tokens: SAMPLE_BYTES,
    temperature: 0.7,
    seed: 1,
  });
  say(`\nExported as Hugging Face safetensors: ${relative(process.cwd(), modelDir)}`);
  say('A sample of its output (a small model after a minute of training):\n');
  say(text.replaceAll(/^/gm, '  | '));
}

function showNextCommands(config: Config): void {
  const keyFile = relative(process.cwd(), join(config.data_dir, 'api-key'));
  say('\nNext');
  say('  npm start                                     the stack in the foreground; with these jobs');
  say('  npx zerofleet open                            the console in the browser, once it runs');
  say(`  cat ${keyFile.padEnd(42)}the API key`);
  say(`  curl -H "Authorization: Bearer $(cat ${keyFile})" http://127.0.0.1:8080/v1/jobs`);
  say('  npm run bench -- train --config llama-tiny    tokens per second on this machine');
}

async function story(stack: Stack, config: Config, signal: AbortSignal): Promise<void> {
  const { url, firstKey } = stack;
  signal.throwIfAborted();
  if (url === null || firstKey === null) throw new QuickstartError('the stack has no API');
  say(`Console and API while this runs: ${url}`);
  if (firstKey.isNew) say(`API key, stored in ${firstKey.file}: ${firstKey.secret}`);

  const corpus = buildCorpus(join(projectRoot(), 'node_modules'), CORPUS_MAX_BYTES);
  const megabytes = (corpus.text.length / 1e6).toFixed(1);
  say(`Corpus: ${corpus.num_files} documentation files of the installed packages, ${megabytes} MB`);

  const client = new Zerofleet({ baseUrl: url, apiKey: firstKey.secret });
  const dataset = await client.datasets.create('documentation of npm packages', corpus.text);
  const quickstart = new Quickstart(client, signal);
  const result = await quickstart.run(dataset.id).finally(() => quickstart.cancel());
  showProof(result);
  if (config.object_store === null) await showSample(result, join(config.data_dir, 'objects'));
  showNextCommands(config);
}

/** Runs the quickstart; sets the exit code. */
export async function main(): Promise<void> {
  const interrupted = new AbortController();
  void endSignal().then((signal) => interrupted.abort(new QuickstartError(`interrupted by ${signal}`)));
  let stack: Stack | undefined;
  try {
    const config = quickstartConfig();
    const logs = join(config.data_dir, 'logs');
    mkdirSync(logs, { recursive: true });
    const output = createWriteStream(join(logs, 'quickstart.log'));
    const log = createLogger({ level: config.log_level, name: 'stack', destination: output });
    stack = await startStack({ config, parts: { api: true, worker: true, autoscaler: false }, log, output });
    await story(stack, config, interrupted.signal);
  } catch (error) {
    const cause = interrupted.signal.aborted ? interrupted.signal.reason : error;
    const message = cause instanceof QuickstartError ? cause.message : explainStartError(cause);
    process.stderr.write(`\n${message}\n`);
    process.exitCode = interrupted.signal.aborted ? INTERRUPTED_EXIT_CODE : 1;
  } finally {
    await stack?.stop();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
