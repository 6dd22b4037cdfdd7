/** What Terraform gives and watches, and what the programs do and say, have to be the same words on both sides. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '../../platform/root.js';

const read = (path: string) => readFileSync(join(projectRoot(), path), 'utf8');
const all = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, word]) => word ?? '');

/** Sources of a folder, without its tests. */
const sources = (folder: string) =>
  readdirSync(join(projectRoot(), folder))
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => read(join(folder, name)))
    .join('\n');

t.test('the filter for saves that failed looks for what the worker logs', (t) => {
  const [message] = all(read('infra/terraform/modules/observability/logs.tf'), /\$\.msg = \\"([^"\\]+)\\"/g);
  t.ok(message);
  t.ok(read('worker/agent/generation.ts').includes(`'${message}'`), `the worker logs ${message}`);
  t.end();
});

t.test('alarms and dashboard use numbers that the autoscaler publishes', (t) => {
  const locals = /^locals \{[^}]*\}/m.exec(read('infra/terraform/modules/observability/pool-alarms.tf'))?.[0];
  const watched = all(locals ?? '', /= "([A-Z]\w+)"/g).filter((name) => name !== 'FailedSaves');
  const published = all(read('autoscaler/aws/cloudwatch.ts'), /^ {4}([A-Z]\w+):/gm);
  t.ok(watched.length >= 7);
  t.same(
    watched.filter((name) => !published.includes(name)),
    [],
  );
  t.end();
});

t.test('the autoscaler may make the calls that it makes, and no others', (t) => {
  const source = sources('autoscaler/aws');
  const called = [...all(source, /new (\w+)Command\(/g), ...all(source, /paginate(\w+)\(/g)];
  const policy = read('infra/terraform/modules/autoscaler/iam.tf');
  const allowed = all(policy, /"(?:autoscaling|cloudwatch):([A-Z]\w+)"/g);
  t.ok(called.length >= 6);
  t.same([...new Set(allowed)].sort(), [...new Set(called)].sort());
  t.end();
});
