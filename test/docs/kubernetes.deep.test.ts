/** Runs the commands of docs/kubernetes.md, and applies its manifests, on a real control plane. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { ControlPlane, whyNoKubernetes } from '../../platform/testing/kubernetes/control-plane.js';
import { cleanEnvironment } from '../support/stack.js';
import { blocksOf, expectation, runBlocks } from './session.js';

const skip = (await whyNoKubernetes()) ?? whyNoKubectl() ?? false;

/** Older ones have a Kustomize that knows neither folders as resources nor patches. */
function whyNoKubectl(): string | null {
  try {
    const { clientVersion } = JSON.parse(
      execFileSync('kubectl', ['version', '--client', '--output=json'], { encoding: 'utf8' }),
    );
    return Number.parseInt(clientVersion.minor, 10) >= 21 ? null : 'not run: needs kubectl 1.21 or later';
  } catch {
    return 'not run: needs kubectl 1.21 or later on the PATH';
  }
}

t.setTimeout(600_000);

t.test('the page on Kubernetes', { skip }, async (t) => {
  const plane = await ControlPlane.start({ nodes: 1, images: {} });
  t.teardown(() => plane.stop());
  const root = projectRoot();
  const home = t.testdir({});
  const [from, to] = [join(root, 'infra/kubernetes/base'), join(home, 'infra/kubernetes/base')];
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from)) {
    const text = readFileSync(join(from, name), 'utf8');
    // Servers before 1.21 know this version of PodDisruptionBudget only by its earlier name.
    writeFileSync(join(to, name), text.replace('apiVersion: policy/v1\n', 'apiVersion: policy/v1beta1\n'));
  }
  const blocks = blocksOf(readFileSync(join(root, 'docs', 'kubernetes.md'), 'utf8'));
  const env = { ...cleanEnvironment(), KUBECONFIG: await plane.adminKubeconfig(), HOME: home };
  const outcomes = await runBlocks(blocks, '', { cwd: home, env });
  t.equal(outcomes.length, blocks.length, 'every block was reached');
  for (const [index, { output, code }] of outcomes.entries()) {
    const { line, expected, commands } = blocks[index] ?? { line: 0, expected: null, commands: '' };
    t.equal(code, 0, `line ${line}: ${commands}\n${output}`);
    // Newer versions of kubectl warn of what an old server has.
    t.match(
      output.replace(/^Warning: .*\n/gm, ''),
      expected === null ? /^$/ : expectation(expected),
      `line ${line}`,
    );
  }
  const namespace = await plane.client.get('/apis/apps/v1/namespaces/zerofleet/deployments');
  t.same(namespace.items?.map(({ metadata }) => metadata.name).sort(), [
    'zerofleet-api',
    'zerofleet-autoscaler',
    'zerofleet-redis',
  ]);
  const settings = await plane.client.get('/api/v1/namespaces/zerofleet/configmaps/zerofleet');
  t.strictSame(settings.data, {
    ZEROFLEET_OBJECT_STORE: 's3://my-bucket',
    AWS_REGION: 'eu-central-1',
  });
});
