// Which tokens of a text are learned, with the tokenizers made of models of SentencePiece.
import t from 'tap';
import { convertSentencepiece } from '../sentencepiece/tokenizer-file.js';
import { sentencepieceModel } from '../testing/sentencepiece.js';
import { HfTokenizer } from './hf-tokenizer.js';

const DOCUMENTS = { config: {}, special_tokens_map: {}, added_tokens: {} };

/** Names and whether the normalizer keeps every character, so that tokens are matched with the text. */
const MODELS = [
  'bpe_llama',
  'bpe_no_prefix',
  'bpe_extra_whitespace',
  'bpe_symbols',
  'bpe_symbols_no_prefix',
  'bpe_rules',
  'unigram_llama',
  'unigram_rules',
  'unigram_symbols',
];

for (const name of MODELS)
  t.test(name, async (t) => {
    const { tokenizer } = convertSentencepiece('tokenizer.model', sentencepieceModel(name), DOCUMENTS);
    const files = { tokenizer: JSON.stringify(tokenizer), config: null, special_tokens_map: null };
    const hf = new HfTokenizer(files, false);
    for (const text of ['a cat ran', '  a   cat  ran ', '<t>a cat<t>ran', 'the man and cat and man']) {
      const begin = text.indexOf('cat');
      const { tokens, counts } = hf.encodeSpans({ text, literal: [] }, [{ begin, end: begin + 3 }]);
      const learned = tokens.filter((_, index) => counts[index] === 1);
      t.equal(hf.decodeAfter([], [...learned]).trim(), 'cat', text);
      const first = counts.indexOf(1);
      const last = counts.lastIndexOf(1);
      t.equal(last - first + 1, learned.length, `${text}, without gaps`);
      const [before, after] = [tokens.slice(0, first), tokens.slice(last + 1)];
      t.notMatch(hf.decodeAfter([], [...before]), /c/);
      t.notMatch(hf.decodeAfter([], [...after]), /c/);
    }
  });
