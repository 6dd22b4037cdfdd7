/** Checks docs/data.md and docs/checkpoints.md by implementing their formats without the program. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { Manifest } from '../../formats/checkpoint/manifest.js';
import { projectRoot } from '../../platform/process/root.js';
import { pythonWith } from '../support/python.js';
import { smallJob } from '../support/specs.js';
import { sampleText, startStack } from '../support/stack.js';
import { digestOf, mixtureOf, readCheckpoint, sequenceAt } from './reference-readers.js';

const page = (name: string) => readFileSync(join(projectRoot(), 'docs', name), 'utf8');

const ORDER = page('sequence_order.py');

function run(python: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(python, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

t.test('the order of sequences', async (t) => {
  const [, seed, epoch, list] =
    /`data\.seed: (\d+)`, ten\s+sequences.*?epoch\s+(\d+)\s+reads\s+the\s+sequences\s+([\d,\s]+)\./s.exec(
      page('data.md'),
    ) ?? [];
  const order = list?.split(/,\s+/).map(Number);
  // Same numbers as in native/test/data/sample_permutation_test.cc.
  t.strictSame(order, [3, 1, 0, 6, 7, 4, 8, 2, 9, 5]);
  const positions = Array.from({ length: 10 }, (_, position) => position);
  t.strictSame(
    positions.map((position) => sequenceAt(Number(seed), 10, Number(epoch), position)),
    order,
  );
  const found = pythonWith('math');
  if ('missing' in found) return t.comment(found.missing);
  const asked = `print([sequence_at(${seed}, 10, ${epoch}, position) for position in range(10)])`;
  const printed = run(found.python, ['-c', `${ORDER}\n${asked}`]);
  t.strictSame(JSON.parse(printed), order);
  for (const [count, at] of [
    [1, 0],
    [2, 5],
    [4097, 2 ** 33 + 1],
  ] as const) {
    const python = `print(sequence_at(5, ${count}, ${at}, 0))`;
    const said = run(found.python, ['-c', `${ORDER}\n${python}`]);
    t.equal(Number(said), sequenceAt(5, count, at, 0));
  }
});

t.test('the order of a mixture', async (t) => {
  const [, list = ''] =
    /the series begins\s+with these sequences \(dataset\.sequence\): ([\d., ]+)\./.exec(page('data.md')) ??
    [];
  // Same numbers as in native/test/data/mixture_order_test.cc, where datasets follow each other.
  const units = [10, 8, 13, 9, 2, 12, 3, 11, 5, 6];
  const named = units.map((unit) => (unit < 10 ? `0.${unit}` : `1.${unit - 10}`));
  t.strictSame(list.split(', '), named);
  t.strictSame(mixtureOf(42, [10, 4], [3, 2], 10), named);
  const found = pythonWith('math');
  if ('missing' in found) return t.comment(found.missing);
  for (const [counts, weights] of [
    [
      [10, 4],
      [3, 2],
    ],
    [
      [5, 9, 1, 20],
      [5, 9, 1, 20],
    ],
    [
      [7, 300, 2],
      [700, 1, 299],
    ],
  ]) {
    const asked = `print(["%d.%d" % mixture_at(5, ${JSON.stringify(counts)}, ${JSON.stringify(weights)}, i) for i in range(400)])`;
    const printed = run(found.python, ['-c', `${ORDER}\n${asked}`]);
    t.strictSame(JSON.parse(printed.replaceAll("'", '"')), mixtureOf(5, counts ?? [], weights ?? [], 400));
  }
});

t.test('every member of the manifest is described', async (t) => {
  const text = page('checkpoints.md');
  const table = text.slice(text.indexOf('**The manifest**'), text.indexOf('**The digest**'));
  const rows = table.split('\n').flatMap((row) => (row.startsWith('| `') ? [row] : []));
  const named = rows.flatMap((row) =>
    [...(row.split('|')[1] ?? '').matchAll(/`([\w[\].]+)`/g)].map(([, name]) => name),
  );
  t.strictSame(named.sort(), [...Object.keys(Manifest.properties), 'sha256'].sort());
  const inner = Manifest.properties;
  for (const part of [
    inner.params.items,
    inner.shards.items,
    inner.sharding,
    inner.lr_schedule,
    inner.loss_scaler,
  ])
    for (const name of Object.keys(part.properties)) t.ok(table.includes(`\`${name}\``), name);
});

t.test('a checkpoint of three ranks: parameters in several runs, frozen ones, an average', async (t) => {
  const { client, data_dir } = await startStack(t);
  const { id: dataset } = await client.datasets.create('text', sampleText());
  const spec = smallJob({ name: 'read me', dataset, steps: 4, ranks: 3 });
  const wide = {
    ...spec.model.config,
    model_type: 'llama' as const,
    hidden_size: 192,
    intermediate_size: 400,
  };
  const paramGroups = [{ match: '*norm*', frozen: true }];
  const { id } = await client.jobs.create({
    ...spec,
    model: { config: wide },
    train: { ...spec.train, steps: 4, ema: { decay: 0.5 }, optimizer: { param_groups: paramGroups } },
  });
  const { latest_checkpoint: last, failure } = await client.jobs.wait(id);
  t.equal(failure, null);
  const { prefix, state_digest } = await client.checkpoints.get(last?.id ?? '');
  const folder = join(data_dir, 'objects', prefix);
  const read = readCheckpoint(folder);
  t.ok(
    [...read.owners.values()].some((owners) => owners.some((rank, i) => rank < (owners[i - 1] ?? rank))),
    'some rank has several runs of a parameter',
  );
  t.ok(read.arrays.size < 4 * read.manifest.params.length, 'frozen parameters have one state');
  t.equal(await digestOf(read), state_digest);
  read.arrays.get('master/model.norm.weight')?.writeUInt8(1, 0);
  t.not(await digestOf(read), state_digest, 'of every byte');

  const found = pythonWith('numpy', 'safetensors', 'xxhash');
  if ('missing' in found) return t.comment(found.missing);
  const program = join(projectRoot(), 'docs', 'read_checkpoint.py');
  const said = JSON.parse(run(found.python, [program, folder]));
  t.strictSame(said, { digest: state_digest, recorded: state_digest, arrays: read.arrays.size });
});

t.test('the README links every page', async (t) => {
  const readme = readFileSync(join(projectRoot(), 'README.md'), 'utf8');
  const rows = readme.split('\n').filter((line) => line.startsWith('| ['));

  const pages = readdirSync(join(projectRoot(), 'docs')).filter((name) => name.endsWith('.md'));
  t.ok(pages.length > 20);
  for (const name of pages)
    t.ok(
      rows.some((row) => row.includes(`](docs/${name})`)),
      name,
    );
});
