/** Names in Terraform must equal those in the programs: log messages, tags, metrics and permissions. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { SETTINGS } from '../../platform/config/config.js';
import { SECRET_NAME } from '../../platform/logging/redact.js';
import { projectRoot } from '../../platform/process/root.js';

const read = (path: string) => readFileSync(join(projectRoot(), path), 'utf8');
const all = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, word]) => word ?? '');

/** Sources of a folder, without tests. */
const sources = (folder: string) =>
  readdirSync(join(projectRoot(), folder))
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => read(join(folder, name)))
    .join('\n');

t.test('log filters match messages of the worker', (t) => {
  const messages = all(read('infra/terraform/modules/observability/logs.tf'), /message = "([^"]+)"/g);
  t.equal(messages.length, 2);
  const logged = [
    read('worker/agent/attempt/generation.ts'),
    read('worker/agent/credentials/sessions.ts'),
  ].join('\n');
  for (const message of messages) t.ok(logged.includes(`'${message}'`), `the worker logs ${message}`);
  t.end();
});

t.test('session tags satisfy their role, and session policies grant only rights of the role', (t) => {
  const role = read('infra/terraform/modules/workers/attempt-role.tf');
  const tags = all(read('worker/agent/credentials/attempt-role.ts'), /_TAG = '([^']+)'/g);
  t.strictSame(all(role, /^ {2}\w+_tag\s+= "([^"]+)"/gm), tags);
  const asked = all(read('worker/agent/credentials/session-policy.ts'), /'((?:s3|kms):[A-Z]\w+)'/g);
  const shared = read('infra/terraform/modules/permissions/main.tf');
  const given = all(role + shared, /"((?:s3|kms):[A-Z]\w+)"/g);
  t.ok(asked.length >= 6);
  t.same(
    asked.filter((action) => !given.includes(action)),
    [],
  );
  t.end();
});

t.test('alarms and dashboard use metrics that the autoscaler publishes', (t) => {
  const locals = /^locals \{[^}]*\}/m.exec(read('infra/terraform/modules/observability/pool-alarms.tf'))?.[0];
  const watched = all(locals ?? '', /= "([A-Z]\w+)"/g).filter((name) => !name.startsWith('Failed'));
  const published = all(read('autoscaler/aws/cloudwatch.ts'), /^ {4}([A-Z]\w+):/gm);
  t.ok(watched.length >= 7);
  t.same(
    watched.filter((name) => !published.includes(name)),
    [],
  );
  t.end();
});

t.test('the autoscaler has exactly the permissions of its calls', (t) => {
  const source = sources('autoscaler/aws');
  const called = [...all(source, /new (\w+)Command\(/g), ...all(source, /paginate(\w+)\(/g)];
  const policy = read('infra/terraform/modules/autoscaler/iam.tf');
  const allowed = all(policy, /"(?:autoscaling|cloudwatch):([A-Z]\w+)"/g);
  t.ok(called.length >= 6);
  t.same([...new Set(allowed)].sort(), [...new Set(called)].sort());
  t.end();
});

t.test('no module takes a secret as a plain setting', (t) => {
  const names = SETTINGS.map(({ key }) => `ZEROFLEET_${key.toUpperCase()}`);
  // A file's name is no secret.
  const secret = names.filter((name) => SECRET_NAME.test(name) && !name.endsWith('_FILE'));
  t.ok(secret.length >= 5);
  for (const file of ['api/variables', 'autoscaler/variables', 'workers/pools']) {
    const [pattern = '', ...more] = all(
      read(`infra/terraform/modules/${file}.tf`),
      /startswith\(\w+, "ZEROFLEET_"\) && !can\(regex\("([^"]+)"/g,
    );
    t.same(more, [], file);
    t.same(
      names.filter((name) => new RegExp(pattern).test(name)),
      secret,
      file,
    );
  }
  t.end();
});
