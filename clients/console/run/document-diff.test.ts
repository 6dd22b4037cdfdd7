import t from 'tap';
import { parse } from 'yaml';
import { diffLines, documentLines } from './document-diff.js';

const given = {
  model: { preset: 'tiny' },
  data: { uri: 's3://bucket/a: b' },
  train: { steps: 10, betas: [0.9, 0.95] },
  labels: {},
};
const resolved = {
  model: { preset: 'tiny', init_from: null },
  data: { dataset: 'ds_1' },
  train: { steps: 10, betas: [0.9, 0.99], ema: { decay: 0.9 } },
  labels: {},
};
const texts = (lines: ReturnType<typeof diffLines>) => lines.map(({ mark, text }) => mark + text);

t.test('what was filled in, changed, or replaced is marked', async (t) => {
  t.same(texts(diffLines(given, resolved)), [
    ' model:',
    '   preset: "tiny"',
    '+  init_from: null',
    ' data:',
    '+  dataset: "ds_1"',
    '-  uri: "s3://bucket/a: b"',
    ' train:',
    '   steps: 10',
    '-  betas: [0.9,0.95]',
    '+  betas: [0.9,0.99]',
    '+  ema:',
    '+    decay: 0.9',
    ' labels: {}',
  ]);
  t.ok(diffLines(given, given).every(({ mark }) => mark === ' '));
});

t.test('the lines are YAML of either document', async (t) => {
  const yaml = (lines: ReturnType<typeof diffLines>) => parse(lines.map(({ text }) => text).join('\n'));
  t.same(yaml(documentLines(given)), given);
  const diff = diffLines(given, resolved);
  t.same(yaml(diff.filter(({ mark }) => mark !== '-')), resolved);
  t.same(yaml(diff.filter(({ mark }) => mark !== '+')), given);
});
