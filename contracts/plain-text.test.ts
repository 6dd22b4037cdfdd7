import t from 'tap';
import { plainText } from './plain-text.js';

t.test('escape sequences are removed, other control characters are replaced', async (t) => {
  t.equal(plainText('\u001b[1;31mred\u001b[0m'), 'red');
  t.equal(plainText('\u009b31mred'), 'red', 'as one character');
  t.equal(plainText('a\u001b]0;title\u0007b'), 'ab');
  t.equal(plainText('a\u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\b'), 'alinkb');
  t.equal(plainText('a\u001b(Bb\u001bcc'), 'abc');
  t.equal(plainText('a\u001b'), 'a\ufffd', 'a truncated one');
  t.equal(plainText('a\u001b]0;never ends'), 'a\ufffd]0;never ends');
  t.equal(plainText('a\r\nb\u0085c\u2028d\u0000e\u007f'), 'a\ufffd\ufffdb\ufffdc\ufffdd\ufffde\ufffd');
  t.equal(plainText('user\u202egpj.exe'), 'user\ufffdgpj.exe', 'no change of writing direction');
  t.equal(plainText('a\ud800b'), 'a\ufffdb', 'an unpaired surrogate');
});

t.test('other text is unchanged', async (t) => {
  for (const text of ['a\tb', 'Zürich, 東京, 😀 [0m', 'loss=2.31 {"a": "b\\n"}', ''])
    t.equal(plainText(text), text);
});

t.test('linear time on any text', async (t) => {
  const started = performance.now();
  for (const piece of ['\u001b', '\u001b[', '\u001b]', '\u001b[0', '\u001b ', '\u009b;'])
    plainText(piece.repeat(4_000));
  t.ok(performance.now() - started < 1_000);
});
