import t from 'tap';
import { ProjectGate } from './project-gate.js';

t.test('a project has four requests in progress, and all projects sixteen', (t) => {
  const gate = new ProjectGate('tensors', { of_project: 4, of_all: 16 });
  const ends = Array.from({ length: 4 }, () => gate.begin('a'));
  t.throws(() => gate.begin('a'), { code: 'rate_limited' });
  ends[0]?.();
  ends[0]?.();
  gate.begin('a');
  t.throws(() => gate.begin('a'), { code: 'rate_limited' }, 'an answer ends once');
  for (const project of ['b', 'c', 'd']) for (let i = 0; i < 4; i++) gate.begin(project);
  t.throws(() => gate.begin('e'), { code: 'rate_limited' });
  ends[1]?.();
  gate.begin('e');
  t.end();
});
