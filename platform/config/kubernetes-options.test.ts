import t from 'tap';
import { poolPolicies } from './autoscale-pools.js';

const POD = { image: 'registry/worker:1', resources: { cpu: '2', 'nvidia.com/gpu': '1' } };
const parse = (kubernetes: object) =>
  poolPolicies(JSON.stringify([{ pool: 'gpu', types: [{ name: 'a100', slots: 4, max: 2, kubernetes }] }]));

t.test('a pod has an image, resources, and defaults', async (t) => {
  t.match(parse(POD)[0]?.types[0]?.kubernetes, {
    ...POD,
    host_network: false,
    tolerations: [],
  });
});

t.test('options that no pod could have are refused', async (t) => {
  for (const [options, message] of [
    [{ image: undefined }, /\/kubernetes must have required property 'image'/],
    [{ image: 'a b' }, /\/kubernetes\/image must match pattern/],
    [{ resources: undefined }, /must have required property 'resources'/],
    [{ resources: { cpu: 'much' } }, /\/kubernetes\/resources\/cpu must match pattern/],
    [{ nodeSelector: {} }, /\/kubernetes\/nodeSelector is unknown/],
    [{ secrets: ['Upper'] }, /\/kubernetes\/secrets\/0 must match pattern/],
    [{ drain_seconds: 1 }, /\/kubernetes\/drain_seconds/],
    [{ env: { ZEROFLEET_SLOTS: '3' } }, /the type "a100": the autoscaler itself sets ZEROFLEET_SLOTS/],
    [{ env: { POD_UID: '3' } }, /the autoscaler itself sets POD_UID/],
    [{ labels: { 'zerofleet/pool': 'x' } }, /zerofleet\/pool: the autoscaler itself sets/],
  ] as const)
    t.throws(() => parse({ ...POD, ...options }), message);
  const gated = { 'kueue.x-k8s.io/queue-name': 'gpus' };
  t.doesNotThrow(() => parse({ ...POD, labels: gated, tolerations: [{ operator: 'Exists' }] }));
});
