import t from 'tap';
import { Turns } from './turns.js';

const end = (below: string) => ({ cursor: `after ${below}`, below });

t.test('one page is read again and again', async (t) => {
  const turns = new Turns();
  for (const last of [null, end('c')]) {
    t.equal(turns.next(), null);
    turns.read(null, last, 'c');
  }
  t.equal(turns.next(), null, 'nothing older was loaded');
});

t.test('others are read in turn with the first one', async (t) => {
  const turns = new Turns();
  const ends = [end('i'), end('f'), end('c')];
  const read: (string | null)[] = [];
  for (let turn = 0; turn < 8; turn += 1) {
    const before = turns.next();
    read.push(before?.below ?? null);
    const at = before === null ? 0 : ends.findIndex(({ below }) => below === before.below) + 1;
    turns.read(before, ends[at] ?? null, 'b');
  }
  t.same(read, [null, 'i', null, 'f', null, 'c', null, 'i']);
});

t.test('the list has become shorter', async (t) => {
  const turns = new Turns();
  turns.read(null, end('i'), 'a');
  turns.read(turns.next(), null, 'g');
  turns.read(turns.next(), null, 'g');
  t.equal(turns.next(), null);
});
