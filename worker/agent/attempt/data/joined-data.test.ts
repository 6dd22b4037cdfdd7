import { createHash } from 'node:crypto';
import t from 'tap';
import type { ResolvedJobSpec } from '../../../../contracts/index.js';
import { testDataset } from '../../../../state/testing/jobs.js';
import { testSpec } from '../../../testing/start-message.js';
import { joinData, type PreparedDataset } from './joined-data.js';

const NAMES = ['a', 'b', 'c'];
const idOf = (name: string) => `ds_${name.repeat(26)}`;

const prepared = (name: string, fields: Partial<PreparedDataset['summary']> = {}): PreparedDataset => ({
  dataset: { ...testDataset(), id: idOf(name), digest: `sha256:${name}` },
  token_file: `/${name}/training`,
  validation_file: null,
  tokens_digest: `sha256:tokens-${name}`,
  summary: {
    documents: 10,
    tokens: 100,
    targets: 90,
    max_token: 50,
    long_documents: 1,
    flaws: {},
    sequences: 20,
    useful_tokens: 10 * specOf({}).train.sequence_length,
    validation_sequences: 0,
    without_targets: 0,
    ...fields,
  },
});

const sha256 = (text: string) => `sha256:${createHash('sha256').update(text).digest('hex')}`;

function specOf(data: Partial<ResolvedJobSpec['data']>, train: object = {}): ResolvedJobSpec {
  const spec = testSpec({ data });
  return { ...spec, train: { ...spec.train, ...train } };
}

const mixture = (...weights: (number | undefined)[]) =>
  weights.map((weight, i) => ({
    dataset: idOf(NAMES[i] as string),
    ...(weight !== undefined && { weight }),
  }));

t.test('a single dataset keeps its digests and its summary', async (t) => {
  const flaws = { no_stop_token: { texts: 2, first_line: 7 } };
  const one = prepared('a', { flaws });
  const joined = joinData(specOf({}), [one], []);
  t.match(joined, {
    training_files: [{ path: '/a/training', weight: 20, useful_share: 0.5 }],
    evaluation_files: [],
    samples: 20,
    data_digest: 'sha256:a',
    tokens_digest: 'sha256:tokens-a',
  });
  const { warnings, evaluation, padding, ...summary } = joined.summary;
  t.equal(padding, 0.5);
  t.strictSame(summary, one.summary);
  t.match(warnings, [
    { pointer: '/data/chat_template', message: /^in 2 of 10 texts \(the first in line 7\)/ },
  ]);
  t.same(evaluation, []);
});

t.test('padding of a mixture is weighted like its datasets', async (t) => {
  const { sequence_length } = specOf({}).train;
  const parts = [prepared('a'), prepared('b', { useful_tokens: 20 * sequence_length })];
  t.equal(joinData(specOf({ mixture: mixture(0.8, 0.2) }), parts, []).summary.padding, 0.4);
});

t.test('files, samples and digests of a mixture', async (t) => {
  const parts = [prepared('a'), prepared('b', { sequences: 6 }), prepared('c', { sequences: 4 })];
  const weighted = joinData(specOf({ mixture: mixture(0.5, 0.2, 0.3) }), parts, []);
  t.match(weighted, {
    training_files: NAMES.map((name, i) => ({ path: `/${name}/training`, weight: [500, 200, 300][i] })),
    samples: 30,
    data_digest: sha256('sha256:a\nsha256:b\nsha256:c'),
    tokens_digest: sha256('sha256:tokens-a\nsha256:tokens-b\nsha256:tokens-c'),
  });
  const unweighted = mixture(undefined, undefined, undefined);
  const bySize = joinData(specOf({ mixture: unweighted }), parts, []);
  t.same(
    bySize.training_files.map(({ weight }) => weight),
    [20, 6, 4],
  );
  const objective = { objective: { type: 'dpo', beta: 0.1 } };
  const pairs = joinData(specOf({ mixture: unweighted }, objective), parts, []);
  t.same(
    pairs.training_files.map(({ weight }) => weight),
    [10, 3, 2],
    'pairs of sequences',
  );
  t.equal(pairs.samples, 15);
});

t.test('held-back parts are evaluated as one, before the named datasets', async (t) => {
  const parts = NAMES.slice(0, 2).map((name) => ({
    ...prepared(name),
    validation_file: `/${name}/validation`,
  }));
  const datasets = [{ name: 'code', dataset: idOf('c') }];
  const spec = specOf(
    { mixture: mixture(1, 1), validation_fraction: 0.1 },
    { evaluation: { every_steps: 5, datasets } },
  );
  const joined = joinData(spec, parts, [prepared('c')]);
  t.same(joined.evaluation_files, [
    { name: 'validation', paths: ['/a/validation', '/b/validation'] },
    { name: 'code', paths: ['/c/training'] },
  ]);
  t.equal(joined.tokens_digest, sha256('sha256:tokens-a\nsha256:tokens-b\nsha256:tokens-c'));
  t.equal(joined.samples, 40, 'data to evaluate on does not count');
  t.match(joined.summary.evaluation, [{ name: 'code', dataset: idOf('c'), documents: 10 }]);
});

t.test('the summary has totals, and the counts, the share and the warnings of each dataset', async (t) => {
  const parts = [
    prepared('a', { flaws: { nothing_learned: { texts: 1, first_line: 3 } }, validation_sequences: 2 }),
    prepared('b', {
      documents: 5,
      tokens: 7,
      targets: 6,
      max_token: 99,
      long_documents: 2,
      sequences: 1,
      without_targets: 4,
      validation_sequences: 1,
      flaws: {
        nothing_learned: { texts: 2, first_line: 1 },
        no_stop_token: { texts: 5, first_line: 1 },
      },
    }),
  ];
  const { summary } = joinData(specOf({ mixture: mixture(3, 1) }), parts, []);
  t.match(summary, {
    documents: 15,
    tokens: 107,
    targets: 96,
    max_token: 99,
    long_documents: 3,
    sequences: 21,
    validation_sequences: 3,
    without_targets: 4,
    flaws: {
      nothing_learned: { texts: 3, first_line: null },
      no_stop_token: { texts: 5, first_line: null },
    },
    mixture: [
      { dataset: idOf('a'), share: 0.75, documents: 10 },
      { dataset: idOf('b'), share: 0.25, documents: 5 },
    ],
  });
  t.match(summary.warnings, [
    { pointer: '/data/mixture/0/dataset', message: new RegExp(`^dataset ${idOf('a')}: in 1 of 10 texts`) },
    { pointer: '/data/chat_template', message: new RegExp(`^dataset ${idOf('b')}: in 5 of 5 texts`) },
    { pointer: '/data/mixture/1/dataset', message: new RegExp(`^dataset ${idOf('b')}: in 2 of 5 texts`) },
  ]);
});
