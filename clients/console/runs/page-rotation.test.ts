import t from 'tap';
import { PageRotation } from './page-rotation.js';

const end = (below: string) => ({ cursor: `after ${below}`, below });

t.test('one page is read again and again', async (t) => {
  const rotation = new PageRotation();
  for (const last of [null, end('c')]) {
    t.equal(rotation.next(), null);
    rotation.read(null, last, 'c');
  }
  t.equal(rotation.next(), null, 'nothing older was loaded');
});

t.test('others are read in turn with the first one', async (t) => {
  const rotation = new PageRotation();
  const ends = [end('i'), end('f'), end('c')];
  const read: (string | null)[] = [];
  for (let turn = 0; turn < 8; turn += 1) {
    const before = rotation.next();
    read.push(before?.below ?? null);
    const at = before === null ? 0 : ends.findIndex(({ below }) => below === before.below) + 1;
    rotation.read(before, ends[at] ?? null, 'b');
  }
  t.same(read, [null, 'i', null, 'f', null, 'c', null, 'i']);
});

t.test('the list has become shorter', async (t) => {
  const rotation = new PageRotation();
  rotation.read(null, end('i'), 'a');
  rotation.read(rotation.next(), null, 'g');
  rotation.read(rotation.next(), null, 'g');
  t.equal(rotation.next(), null);
});
