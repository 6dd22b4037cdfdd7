/** The model card of an export: its README.md on the Hugging Face Hub. */
import { parseHubUri } from '../../contracts/index.js';
import type { Checkpoint, Dataset, Download, Job, Model, ResolvedJobSpec } from '../../contracts/types.js';
import { trainingDatasetsOf } from '../../job-document/index.js';
import { bytes } from '../text/numbers.js';

interface CardFacts {
  /** `owner/name` of the card's repository. */
  repository: string;
  job: Job;
  checkpoint: Checkpoint;
  exported: Download;
  /** Initial model; null for fresh weights, a checkpoint, and a deleted model. */
  base: Model | null;
  /** Training data that was not deleted. */
  datasets: readonly Dataset[];
}

type Sources = NonNullable<ResolvedJobSpec['sources']>;

/** Only the Hub's own sources are named: names of buckets stay private. */
function hubSources({ sources = {} }: ResolvedJobSpec): Sources {
  return Object.fromEntries(Object.entries(sources).filter(([, uri]) => uri.startsWith('hf://')));
}

/**
 * Document that repeats a job, for a reader who has none of its records. It names content of the Hub by URI and commit,
 * and leaves out the project's labels, notifications and integrations.
 */
export function repeatableDocument(spec: ResolvedJobSpec, format: Dataset['format'] | null): object {
  const sources = hubSources(spec);
  const { model, data, train, zero, resources, checkpoint, limits, retry, export: exported } = spec;
  const { init_from, preset, config } = model;
  const named = init_from !== null && 'model' in init_from ? init_from.model : null;
  const { dataset, mixture, tokenizer, ...reading } = data;
  const document = {
    name: spec.name || null,
    model: {
      ...(preset === null ? { config } : { preset }),
      quantization: model.quantization ?? null,
      init_from: initOf(init_from, sources),
    },
    data: {
      ...(mixture === undefined
        ? sentDataset({ dataset }, format, sources)
        : { mixture: mixture.map((entry) => sentDataset(entry, format, sources)) }),
      // The model brings its own.
      tokenizer: tokenizer === named || !tokenizer ? null : (sources[tokenizer] ?? tokenizer),
      ...reading,
    },
    train,
    zero,
    resources: { ranks: resources.ranks },
    checkpoint,
    limits,
    retry,
    export: exported,
  };
  return withoutNulls(document) as object;
}

function sentDataset(
  entry: { dataset?: string },
  format: Dataset['format'] | null,
  sources: Sources,
): object {
  const { dataset = '', ...rest } = entry;
  const uri = sources[dataset];
  return uri === undefined ? entry : { uri, format, ...rest };
}

function initOf(init: ResolvedJobSpec['model']['init_from'], sources: Sources): object | null {
  if (init === null) return null;
  if ('checkpoint' in init) return { checkpoint: init.checkpoint, restore: init.restore };
  const uri = sources[init.model];
  return uri === undefined ? init : { uri };
}

/** Removes nulls: a resolved document has null for absent fields, a sent document omits them. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  const present = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(present.map(([name, member]) => [name, withoutNulls(member)]));
}

/** The card in Markdown, with metadata that the Hub reads. */
export function modelCard(facts: CardFacts): string {
  const { repository, job, datasets } = facts;
  const sources = hubSources(job.spec);
  const document = repeatableDocument(job.spec, datasets[0]?.format ?? null);
  return [
    ...metadata(facts, sources),
    '',
    `# ${repository.split('/').at(-1)}`,
    '',
    'Trained with zerofleet, a self-hosted API for training jobs. The result does not depend on the number of ranks or on',
    'interruptions, so the same document gives the same bits.',
    '',
    ...table(rowsOf(facts, sources)),
    '',
    '## How to repeat it',
    '',
    ...repetition(facts, sources),
    '',
    '```sh',
    'zerofleet submit job.json --watch',
    'zerofleet download JOB',
    '```',
    '',
    '`job.json`:',
    '',
    '```json',
    JSON.stringify(document, null, 2),
    '```',
    '',
  ].join('\n');
}

function metadata({ base, datasets, exported }: CardFacts, sources: Sources): string[] {
  const model = sources[base?.id ?? ''];
  const uris = datasets.flatMap(({ id }) => sources[id] ?? []);
  const repositories = [...new Set(uris.map((uri) => parseHubUri(uri).repository))];
  return [
    '---',
    `library_name: ${exported.format === 'peft' ? 'peft' : 'transformers'}`,
    'tags: [zerofleet]',
    ...(model === undefined ? [] : [`base_model: ${parseHubUri(model).repository}`]),
    ...(repositories.length === 0 ? [] : [`datasets: [${repositories.join(', ')}]`]),
    '---',
  ];
}

type Row = [name: string, value: string];

function rowsOf({ job, checkpoint, exported, base, datasets }: CardFacts, sources: Sources): Row[] {
  const weights = new Map(trainingDatasetsOf(job.spec.data).map((each) => [each.dataset, each.weight]));
  const { format, dtype, state_digest } = exported;
  const rows: (Row | null)[] = [
    ['job', `\`${job.id}\``],
    ['checkpoint', `\`${checkpoint.id}\`, step ${checkpoint.step}`],
    ['digest of the training state', `\`${state_digest}\``],
    ['export', [format, dtype, exported.weights].filter(Boolean).join(', ')],
    base && ['base', `${sourceOf(base.id, sources)}${digestOf(base.digest)}`],
    ...datasets.map(
      ({ id, digest, format, bytes: size, num_documents }): Row => [
        'data',
        `${sourceOf(id, sources)}${digestOf(digest)}, ${format}, ${bytes(size)}, documents: ${num_documents}` +
          weightOf(weights.get(id)),
      ],
    ),
  ];
  return rows.filter((row) => row !== null);
}

function sourceOf(id: string, sources: Sources): string {
  return sources[id] === undefined ? `\`${id}\`` : `\`${sources[id]}\``;
}

const weightOf = (weight: number | undefined) => (weight === undefined ? '' : `, weight ${weight}`);

const digestOf = (digest: string) => (digest === '' ? '' : `, \`${digest}\``);

function table(rows: readonly Row[]): string[] {
  return ['| | |', '|---|---|', ...rows.map(([name, value]) => `| ${name} | ${value} |`)];
}

/** Returns the data that a repetition needs besides the document. */
function repetition({ job, base, datasets }: CardFacts, sources: Sources): string[] {
  const uploads = [base, ...datasets].filter((record) => record !== null && sources[record.id] === undefined);
  const needed = uploads.map(
    (record) =>
      `Upload the content with the digest \`${record?.digest}\`, and write its id in place of \`${record?.id}\`.`,
  );
  const { init_from } = job.spec.model;
  const begun = init_from !== null && 'checkpoint' in init_from;
  return [
    ...needed,
    ...(begun ? [`The job begins with the checkpoint \`${init_from.checkpoint}\` of another job.`] : []),
    'Submit the document, and compare the digest of the training state.',
  ];
}
