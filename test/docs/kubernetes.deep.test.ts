/** Runs the commands of docs/kubernetes.md, and applies its manifests, on a real control plane. */
import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { podOf } from '../../autoscaler/kubernetes/pod-manifest.js';
import { poolPolicies } from '../../platform/config/autoscale-pools.js';
import { projectRoot } from '../../platform/process/root.js';
import { ControlPlane, whyNoKubernetes } from '../../platform/testing/kubernetes/control-plane.js';
import { untilDone } from '../../platform/testing/waiting.js';
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
  const manifests = join(home, 'infra/kubernetes');
  cpSync(join(root, 'infra/kubernetes'), manifests, { recursive: true });
  // Servers before 1.21 know this version of PodDisruptionBudget only by its earlier name.
  const api = join(manifests, 'base/api.yaml');
  const text = readFileSync(api, 'utf8');
  writeFileSync(api, text.replace('apiVersion: policy/v1\n', 'apiVersion: policy/v1beta1\n'));
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

  const kubectl = (...args: string[]) => execFileSync('kubectl', args, { env, encoding: 'utf8' });
  for (const overlay of readdirSync(join(manifests, 'overlays'))) {
    await t.test(`the overlay ${overlay}`, async (t) => {
      await plane.client.post('/api/v1/namespaces', { metadata: { name: overlay } });
      const apply = (...options: string[]) =>
        kubectl('apply', '-n', overlay, '-k', join(manifests, 'overlays', overlay), ...options)
          .trim()
          .split('\n');
      const tried = apply('--dry-run=server');
      t.same(
        tried.filter((line) => !line.endsWith(' created (server dry run)')),
        [],
      );
      t.equal(apply().length, tried.length);
      t.same(
        apply().filter((line) => !line.endsWith(' unchanged')),
        [],
      );
      const { data = {} } = await plane.client.get(
        `/api/v1/namespaces/${overlay}/configmaps/zerofleet-autoscaler`,
      );
      const [pool] = poolPolicies(data.ZEROFLEET_AUTOSCALE_POOLS ?? '');
      const type = pool?.types[0];
      if (!pool || !type) throw new Error('no pool');
      // The server takes the pod that the autoscaler would create.
      const pods = `/api/v1/namespaces/${overlay}/pods?dryRun=All`;
      // The namespace gets the account of pods without one after a moment.
      const pod = await untilDone(() => plane.client.post(pods, podOf(pool, type, 0, null)));
      t.match(pod.metadata.name, /^default-/);
    });
  }
});
