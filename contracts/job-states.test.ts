import t from 'tap';
import { canTransition } from './job-states.js';

t.test('the states that Lua commands set are in the state table', async (t) => {
  for (const from of ['provisioning', 'starting', 'running'] as const) {
    t.ok(canTransition(from, 'recovering'), `${from}: a job whose worker was lost can be claimed again`);
  }
  t.ok(canTransition('queued', 'provisioning'));
  t.ok(canTransition('queued', 'paused'));
  t.ok(canTransition('paused', 'queued'));
  t.ok(canTransition('pausing', 'paused'));
  for (const from of ['provisioning', 'starting', 'running', 'recovering'] as const) {
    t.ok(
      canTransition(from, 'pausing') && canTransition(from, 'cancelling') && canTransition(from, 'queued'),
    );
  }
});
