/**
 * Preparation of a dataset: `npm run bench -- prepare --peer PYTHON --megabytes 42 --threads 2`.
 *
 * Converts JSONL of texts and of two-turn chats to token files, as a worker does before a job, with a byte-level BPE of
 * 32,000 tokens. `--peer`, a Python with `tokenizers` and `jinja2`, makes the inputs from the Markdown files of
 * `node_modules`, and encodes them with as many threads. The peer makes tokens alone, without masks, sequences and
 * digests. Both must find the same number of tokens. A line is the medians of a kind of data; `cpu_ratio` and `ratio`
 * are those of the peer in relation to the preparation here.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { type Dataset, modelKey } from '../contracts/index.js';
import { openObjectStore } from '../platform/object-store/index.js';
import { projectRoot } from '../platform/process/root.js';
import { prepareTokens, type TokenRequest } from '../worker/tasks/data/prepare-tokens.js';
import { benchOptions, count, text } from './options.js';
import { median, report } from './report.js';

const { peer, megabytes, threads, rounds } = benchOptions({
  peer: text(),
  megabytes: count(42),
  threads: count(2),
  rounds: count(3),
});

const KINDS = ['text', 'chats'] as const;
const VOCAB = 32_000;
const MODEL = 'mdl_01J00000000000000000000000';
const DATASET = 'ds_01J00000000000000000000000';
/** ChatML, as many public models have it. */
const TEMPLATE =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

interface Run {
  tokens: number;
  seconds: number;
  cpu_seconds: number;
}

const python = async (...args: string[]) => {
  const script = join(projectRoot(), 'bench', 'peers', 'tokenizers_prepare.py');
  const env = { ...process.env, RAYON_NUM_THREADS: String(threads), TOKENIZERS_PARALLELISM: 'true' };
  const { stdout } = await promisify(execFile)(peer ?? '', [script, ...args], { env });
  return stdout;
};

function requestOf(kind: (typeof KINDS)[number], content: Buffer, cache: string): TokenRequest {
  const lines = content.toString('utf8').split('\n').length - 1;
  const dataset = {
    id: DATASET,
    name: kind,
    description: '',
    format: 'jsonl',
    bytes: content.length,
    digest: `sha256:${createHash('sha256').update(content).digest('hex')}`,
    num_documents: lines,
    source: null,
    num_chats: kind === 'chats' ? lines : 0,
    num_preferences: 0,
    num_labelled: 0,
    num_prompts: 0,
    num_tokens: null,
    max_token: null,
    project: 'default',
    created_at: '',
  } satisfies Dataset;
  return {
    dataset,
    object_key: kind,
    unit: null,
    data: {
      dataset: DATASET,
      tokenizer: MODEL,
      chat_template: kind === 'chats' ? TEMPLATE : null,
      parse_special_tokens: false,
      template_date: null,
      packing: 'whole',
      validation_fraction: 0,
      seed: 1,
    },
    sequence_length: 2048,
    vocab_size: VOCAB,
    cache_dir: cache,
    cache_bytes: Number.POSITIVE_INFINITY,
    num_threads: threads,
    attempt: 'bench',
  };
}

async function measure(folder: string): Promise<void> {
  await python(
    'make',
    folder,
    '--from',
    join(projectRoot(), 'node_modules'),
    '--megabytes',
    String(megabytes),
  );
  await writeFile(join(folder, 'template.jinja'), TEMPLATE);
  const objects = await openObjectStore(pathToFileURL(join(folder, 'objects')).href, { create: true });
  await objects.put(`${modelKey(MODEL)}/tokenizer.json`, await readFile(join(folder, 'tokenizer.json')));
  for (const kind of KINDS) {
    const content = await readFile(join(folder, `${kind}.jsonl`));
    await objects.put(kind, content);
    const cache = join(folder, 'cache');
    const request = requestOf(kind, content, cache);
    const here = async (): Promise<Run> => {
      const [began, used] = [performance.now(), process.cpuUsage()];
      const { summary } = await prepareTokens(objects, request);
      const { user, system } = process.cpuUsage(used);
      const seconds = (performance.now() - began) / 1000;
      await rm(cache, { recursive: true });
      return { tokens: summary.tokens, seconds, cpu_seconds: (user + system) / 1e6 };
    };
    const runs: { ours: Run; theirs: Run }[] = [];
    for (let round = 0; round < rounds; round++)
      runs.push({ ours: await here(), theirs: JSON.parse(await python('encode', folder, kind)) as Run });
    for (const { ours, theirs } of runs)
      if (ours.tokens !== theirs.tokens)
        throw new Error(`${kind}: ${ours.tokens} tokens here, ${theirs.tokens} by the peer`);
    const medianOf = (side: 'ours' | 'theirs', field: keyof Run) =>
      median(runs.map((run) => run[side][field]));
    report('prepare', {
      what: kind,
      mb: Number((content.length / 1e6).toFixed(1)),
      threads,
      tokens: medianOf('ours', 'tokens'),
      seconds: medianOf('ours', 'seconds'),
      cpu_seconds: medianOf('ours', 'cpu_seconds'),
      peer_seconds: medianOf('theirs', 'seconds'),
      peer_cpu_seconds: medianOf('theirs', 'cpu_seconds'),
      ratio: medianOf('theirs', 'seconds') / medianOf('ours', 'seconds'),
      cpu_ratio: medianOf('theirs', 'cpu_seconds') / medianOf('ours', 'cpu_seconds'),
    });
  }
  await objects.close();
}

if (peer === null) throw new Error('--peer needs the path of a Python with tokenizers and jinja2');
const folder = await mkdtemp(join(tmpdir(), 'zf-prepare-'));
try {
  await measure(folder);
} finally {
  await rm(folder, { recursive: true });
}
