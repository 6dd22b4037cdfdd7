/** Byte-level BPE, such as that of GPT-2, Llama 3 and Qwen, which llama.cpp calls `gpt2`. */
import type { Component } from '../tokenizer/fields.js';
import { type GgufMetadata, string, strings } from './file.js';
import { type Token, type TokenizerFile, tokenList, unsupported } from './vocabulary.js';

const CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const WORD = '[^\\r\\n\\p{L}\\p{N}]?\\p{L}+';
const SIGNS = ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*';
const SPACES = '\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';
const splitBy = (digits: string) =>
  `Split(${CONTRACTIONS}|${WORD}|${digits}|${SIGNS}|${SPACES}, Isolated) ByteLevel`;

/**
 * llama.cpp has the pre-tokenizer of a model by name, with its expressions in C++. These names have the expressions of
 * these components of a `tokenizer.json`, and treat whole words of the vocabulary (`ignore_merges`) the same.
 */
const PRE_TOKENIZERS: readonly { parts: string; ignoreMerges: boolean; name: string }[] = [
  { parts: 'ByteLevel(words)', ignoreMerges: false, name: 'gpt-2' },
  { parts: 'Digits(individual) ByteLevel(words)', ignoreMerges: false, name: 'smollm' },
  { parts: splitBy('\\p{N}{1,3}'), ignoreMerges: true, name: 'llama-bpe' },
  { parts: splitBy('\\p{N}{1,3}'), ignoreMerges: false, name: 'dbrx' },
  { parts: splitBy('\\p{N}'), ignoreMerges: false, name: 'qwen2' },
];

export function isByteLevel({ preTokenizers }: TokenizerFile): boolean {
  return preTokenizers.some(({ type }) => type === 'ByteLevel');
}

/** @throws ZerofleetError `export_unsupported` */
export function byteLevelTokens(
  file: TokenizerFile,
  vocabSize: number,
): { tokens: Token[]; metadata: GgufMetadata } {
  // Qwen's NFC is the one normalizer that converted models have always gone without: most texts are in NFC.
  const normalizer = file.normalizers.find(({ type }) => type !== 'NFC');
  if (normalizer) throw unsupported(`llama.cpp has no normalizer ${normalizer.type} for byte-level BPE`);
  return {
    tokens: tokenList(file, vocabSize, () => 'normal'),
    metadata: [
      ['tokenizer.ggml.model', string('gpt2')],
      ['tokenizer.ggml.pre', string(preTokenizerName(file))],
      ['tokenizer.ggml.merges', strings(file.merges.map((pair) => pair.join(' ')))],
    ],
  };
}

function preTokenizerName({ preTokenizers, model }: TokenizerFile): string {
  const ignoreMerges = model.boolean('ignore_merges', false);
  const parts = preTokenizers.map(described).join(' ');
  const found = PRE_TOKENIZERS.find((known) => known.parts === parts && known.ignoreMerges === ignoreMerges);
  if (found) return found.name;
  const names = PRE_TOKENIZERS.map(({ name }) => name).join(', ');
  throw unsupported(
    `its pre-tokenizer ${parts}${ignoreMerges ? ' with ignore_merges' : ''} is none of those that are known to equal one of llama.cpp (${names})`,
  );
}

/** Returns what a component does, in one spelling for all that do the same. */
function described(component: Component): string {
  switch (component.type) {
    case 'ByteLevel':
      if (component.boolean('add_prefix_space')) return 'ByteLevel(add_prefix_space)';
      return component.boolean('use_regex', true) ? 'ByteLevel(words)' : 'ByteLevel';
    case 'Digits':
      return component.boolean('individual_digits', false) ? 'Digits(individual)' : 'Digits';
    case 'Split': {
      const { Regex } = component.value('pattern') as { Regex?: unknown };
      const inverted = component.boolean('invert', false) ? ', inverted' : '';
      return `Split(${String(Regex)}, ${component.string('behavior')}${inverted})`;
    }
    default:
      return component.type;
  }
}
