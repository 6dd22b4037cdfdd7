/** Changes of jobs from the command line: rates, labels, ranks, retries, deletion. */
import t from 'tap';
import { start } from './command-line.js';

t.test('the rates of groups of parameters are overridden', async (t) => {
  const { stack, zerofleet } = await start(t);
  const paramGroups = [
    { match: 'lm_head.*', lr: 0.002 },
    { match: '*norm*', weight_decay: 0.1 },
  ];
  const { id } = await stack.createJob({
    train: { steps: 9, optimizer: { type: 'adamw', param_groups: paramGroups } },
  });
  const override = async (...args: string[]) => zerofleet(['override', id, '--step', '3', ...args]);
  t.match(await override('--group-lr', 'lm_head.*=1e-4', '--lr', '1e-3'), { code: 0 });
  t.match(await override('--group-lr', '*norm*=0', '--group-lr', 'lm_head.*=share'), {
    code: 0,
    out: `${id}  queued  [{"step":3,"lr":0.001,"group_lr":{"lm_head.*":null,"*norm*":0}}]`,
  });
  for (const wrong of ['lm_head.*', 'lm_head.*=', '=1', 'lm_head.*=fast'])
    t.match(await override('--group-lr', wrong), { code: 2, err: /write match=rate, or match=share/ }, wrong);
  t.match(await override('--group-lr', 'embed*=1'), { code: 1, err: /group_lr/ });
});

t.test('a job is updated, retried and deleted', async (t) => {
  const { stack, zerofleet } = await start(t);
  const job = await stack.createJob({ labels: { team: 'a' }, train: { steps: 9 } });
  const { id } = job;
  t.match(await zerofleet(['update', id]), { code: 2, err: /nothing to change/ });
  t.match(await zerofleet(['update', id, '--label', 'nonsense']), { code: 2, err: /write key=value/ });
  const changes = ['--priority', '-5', '--label', 'kind=b', '--unlabel', 'team', '--max-ranks', '3'];
  t.match(await zerofleet(['update', id, ...changes]), {
    code: 0,
    out: /queued {2}priority -5 {2}ranks 1 to 3, 2 preferred {2}kind=b$/,
  });
  t.match(await zerofleet(['update', id, '--notes', 'tries a smaller rate']), { code: 0 });
  t.equal((await stack.store.getJob(id))?.spec.notes, 'tries a smaller rate');
  t.match(await zerofleet(['override', id]), { code: 2, err: /--lr, --group-lr or --loss-scale/ });
  t.match(await zerofleet(['override', id, '--step', '1', '--lr', 'schedule']), { code: 0 });
  t.match(await zerofleet(['override', id, '--lr', '1e-4']), {
    code: 0,
    out: `${id}  queued  [{"step":0,"lr":0.0001},{"step":1,"lr":null}]`,
  });
  t.match(await zerofleet(['attempts', id]), { code: 0, out: 'no attempt has started yet' });
  const claim = await stack.store.claimAttempt(id, 1, 'worker-a', 600_000);
  if (!claim.granted) throw new Error(claim.code);
  t.match(await zerofleet(['delete', id]), { code: 1, err: /409 invalid_state: .*cancel it first/ });
  await stack.store.transition(id, claim.execution, 'starting');
  for (const worldSize of [1, 3, 2, 1, 3, 2, 1])
    await stack.store.transition(id, claim.execution, 'running', { patch: { world_size: worldSize } });
  const failure = { category: 'oom', code: 'oom_killed', message: 'gone', rank: 1, step: 2 } as const;
  await stack.store.finishJob(id, claim.execution, 'failed', {
    reason: 'oom_killed',
    failure: { ...failure, retryable: true },
  });
  t.match(await zerofleet(['attempts', id]), {
    code: 0,
    out: /1 +1 +… → 2 → 1 → 3 → 2 → 1 +failed +oom_killed +oom_killed \(rank 1\)/,
  });
  t.match(await zerofleet(['retry', id]), { code: 0, out: `${id}  queued  attempt 2` });
  await zerofleet(['cancel', id]);
  t.match(await zerofleet(['delete', id, '--artifacts']), { code: 0, out: `${id}  deleted` });
  t.match(await zerofleet(['get', id]), { code: 1, err: /job_not_found/ });
});
