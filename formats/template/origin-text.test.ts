import fc from 'fast-check';
import t from 'tap';
import { OriginText } from './origin-text.js';

/** Texts of up to three origins, with letters that strip, split and replace look for. */
const texts = fc
  .array(
    fc.record({
      text: fc.string({ unit: fc.constantFrom('a', 'b', ' ', '\n', '😀') }),
      origin: fc.nat(40_000),
    }),
    { minLength: 1, maxLength: 4 },
  )
  .map((runs) => new OriginText(runs));

/** The origin of each unit of a text. */
const originsOf = ({ runs }: OriginText) =>
  runs.flatMap(({ text, origin }) => [...text.split('')].map(() => origin));

t.test('parts have the text and the origins of the whole', async (t) => {
  fc.assert(
    fc.property(texts, fc.nat(20), fc.nat(20), (text, a, b) => {
      const [begin, end] = [Math.min(a, b), Math.max(a, b)];
      const part = text.slice(begin, end);
      t.equal(part.text, text.text.slice(begin, end));
      t.same(originsOf(part), originsOf(text).slice(begin, end));
      t.same(originsOf(OriginText.join(text.split('a'), OriginText.of('a', -1))).length, text.text.length);
    }),
    { numRuns: 50 },
  );
});

t.test('methods are those of Python', async (t) => {
  const text = (text: string) => OriginText.of(text, 1);
  const texts = (parts: OriginText[]) => parts.map(({ text }) => text);
  const both = { begin: true, end: true };
  t.equal(text('\n a \n').strip('\n', both).text, ' a ');
  t.equal(text('\u0085\x1c a\ufeff \u3000').strip(null, both).text, 'a\ufeff');
  t.equal(text('^]-a-]^').strip('-]^', both).text, 'a');
  t.equal(text(' a ').strip('', both).text, ' a ');
  t.equal(text('😀a😀').strip('😀', { begin: false, end: true }).text, '😀a');
  t.same(texts(text(' a  b c ').split(null)), ['a', 'b', 'c']);
  t.same(texts(text(' a  b c ').split(null, 1)), ['a', 'b c ']);
  t.same(texts(text('aXbXc').split('X', 1)), ['a', 'bXc']);
  t.same(texts(text('XaX').split('X')), ['', 'a', '']);
  t.throws(() => text('a').split(''), /empty separator/);
  t.equal(text('aXbXc').replace('X', text('--'), 1).text, 'a--bXc');
  t.equal(text('ab').replace('', text('-'), -1).text, '-a-b-');
  t.equal(text('ab').replace('', text('-'), 2).text, '-a-b');
  t.equal(text('ß').mapped((text) => text.toUpperCase()).text, 'SS');
});
