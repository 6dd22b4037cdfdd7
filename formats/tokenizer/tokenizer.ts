/**
 * Reader of a Hugging Face `tokenizer.json`, with the results of their Rust library. It matches added tokens, and
 * normalizes, splits and tokenizes the text between them. Components that would give other results are refused by name.
 * Truncation and padding, which the file may contain, are for batches and do not apply to texts.
 */
import {
  type AddedToken,
  addedTokensOf,
  type MaySpecial,
  type Section,
  TokenFinder,
} from './added-tokens.js';
import { unitsAt } from './characters.js';
import { Component, refused } from './fields.js';
import { modelOf } from './models.js';
import { type Normalizer, normalizerOf } from './normalizers.js';
import { PieceCache } from './piece-cache.js';
import { type Around, aroundOf } from './post-processors.js';
import { type PreTokenizer, prependScheme, preTokenizerOf } from './pre-tokenizers.js';
import { type DecoderTable, TokenDecoder } from './token-decoder.js';
import type { TokenModel } from './token-model.js';
import type { Vocabulary } from './vocabulary.js';

/**
 * Positions of a text where special tokens are recognized: everywhere, nowhere, or wherever none of these
 * positions (ascending, UTF-16 units) lies inside of their text.
 */
export type SpecialTokens = 'parsed' | 'text' | readonly number[];

/** Greatest number of characters of a token with text: the longest ones of known vocabularies have some hundred. */
const MAX_TOKEN_TEXT = 1024;

export class Tokenizer {
  /** Tokens that the post-processor adds around a text. */
  readonly around: Around;
  readonly added: readonly AddedToken[];
  private madeDecoder: TokenDecoder | null = null;
  private readonly decoderComponent: unknown;
  private readonly addedById: ReadonlyMap<number, AddedToken>;
  private readonly asWritten: TokenFinder;
  private readonly normalized: TokenFinder;
  private readonly normalize: Normalizer;
  private readonly preTokenizer: PreTokenizer;
  private readonly model: TokenModel;
  private readonly cache: PieceCache;

  /**
   * @param file `tokenizer.json` with ids checked by `vocabSizeOf`
   * @throws ZerofleetError `tokenizer_invalid`
   */
  constructor(file: Readonly<Record<string, unknown>>) {
    const root = new Component(file, 'tokenizer');
    const part = (name: string) => (root.value(name) === null ? null : new Component(root.value(name), name));
    checkFirst(part('normalizer'), part('pre_tokenizer'));
    this.normalize = normalizerOf(part('normalizer'));
    const preTokenizer = preTokenizerOf(part('pre_tokenizer'));
    const added = (root.value('added_tokens') === null ? [] : root.list('added_tokens')).map(
      (token, index) => new Component(token, `added_tokens[${index}]`),
    );
    const model = modelOf(new Component(root.value('model'), 'model'), specialTexts(added));
    this.preTokenizer = preTokenizer;
    this.model = model;
    this.cache = new PieceCache((piece) => model.encode(preTokenizer.spell(piece)));
    this.around = aroundOf(part('post_processor'));
    this.added = addedTokensOf(added, this.model.vocabulary, this.normalize);
    this.addedById = new Map(this.added.map((token) => [token.id, token]));
    this.decoderComponent = root.value('decoder');
    // Training decodes nothing, so the table is only checked.
    new TokenDecoder(this.decoderTable);
    const later = this.added.filter(({ normalized }) => normalized !== null);
    const atOnce = this.added.filter(({ normalized }) => normalized === null);
    this.asWritten = new TokenFinder(atOnce, ({ content }) => content);
    this.normalized = new TokenFinder(later, ({ normalized, content }) => normalized ?? content);
  }

  /** Returns the tokens of a text, without those of the post-processor. */
  encode(text: string, special: SpecialTokens): number[] {
    const maySpecial = rule(special);
    const ids: number[] = [];
    for (const section of this.asWritten.sections(text, maySpecial)) {
      if (section.token) ids.push(section.token.id);
      else this.encodeSection(text, section, special, ids);
    }
    return ids;
  }

  /** Decodes its tokens. */
  get decoder(): TokenDecoder {
    this.madeDecoder ??= new TokenDecoder(this.decoderTable);
    return this.madeDecoder;
  }

  get decoderTable(): DecoderTable {
    return { texts: textsOf(this.model.vocabulary, this.added), decoder: this.decoderComponent };
  }

  id(token: string): number | null {
    return this.added.find(({ content }) => content === token)?.id ?? this.model.vocabulary.id(token) ?? null;
  }

  /** Returns the text of a token and whether it is an added one. */
  token(id: number): { content: string; added: boolean } | null {
    const added = this.addedById.get(id);
    if (added) return { content: added.content, added: true };
    const content = this.model.vocabulary.token(id);
    return content === undefined ? null : { content, added: false };
  }

  /** Returns a pattern of the special tokens' texts, longest first; null when there are none. */
  specialTexts(): RegExp | null {
    const contents = this.added.filter(({ special }) => special).map(({ content }) => content);
    if (contents.length === 0) return null;
    contents.sort((a, b) => b.length - a.length);
    const escaped = contents.map((content) => content.replace(/[\^$.*+?()[\]{}|/-]/g, '\\$&'));
    return new RegExp(escaped.join('|'), 'gu');
  }

  private encodeSection(text: string, { begin, end }: Section, special: SpecialTokens, ids: number[]): void {
    const raw = text.slice(begin, end);
    const normalized = this.normalize(raw);
    const maySpecial = rule(this.normalizedPositions(raw, begin, special));
    const starts = begin === 0 && this.keepsBegin(raw);
    for (const section of this.normalized.sections(normalized, maySpecial)) {
      if (section.token) ids.push(section.token.id);
      else {
        const piece = {
          text: normalized.slice(section.begin, section.end),
          first: starts && section.begin === 0,
        };
        for (const { text: part } of this.preTokenizer.divide([piece])) push(ids, this.cache.tokens(part));
      }
    }
  }

  /** Maps positions of a section to its normalized text. */
  private normalizedPositions(raw: string, begin: number, special: SpecialTokens): SpecialTokens {
    if (typeof special === 'string') return special;
    return special
      .filter((position) => position > begin && position < begin + raw.length)
      .map((position) => this.normalize(raw.slice(0, position - begin)).length);
  }

  /**
   * Returns whether the first character of a text survives normalization; otherwise the following text is not
   * first.
   */
  private keepsBegin(raw: string): boolean {
    const first = String.fromCodePoint(raw.codePointAt(0) ?? 0);
    return this.normalize(first) !== '';
  }
}

/**
 * Returns the texts of special tokens, which the model must not make from a text of users. A single character stays a
 * token of the model, because a text may have no other way to spell it.
 */
function specialTexts(added: readonly Component[]): Set<string> {
  const special = added.filter((token) => token.boolean('special', false));
  return new Set(
    special.map((token) => token.string('content')).filter((text) => text.length > unitsAt(text, 0)),
  );
}

/** Returns what the decoder gets of each token with text. @throws ZerofleetError `tokenizer_invalid` */
function textsOf(vocabulary: Vocabulary, added: readonly AddedToken[]): Map<number, string> {
  const texts = new Map<number, string>();
  for (const [text, id] of vocabulary.ids) texts.set(id, text);
  for (const { id, special, normalized, content } of added)
    if (special) texts.delete(id);
    else texts.set(id, normalized ?? content);
  for (const [id, { length }] of texts)
    if (length > MAX_TOKEN_TEXT)
      throw refused(`the token ${id} has ${length} characters; at most ${MAX_TOKEN_TEXT} are supported`);
  return texts;
}

function rule(special: SpecialTokens): MaySpecial {
  if (special === 'parsed') return () => true;
  if (special === 'text') return () => false;
  return (begin, end) => !special.some((position) => begin < position && position < end);
}

/** Appends in a loop, because a piece may have more tokens than a call can have arguments. */
function push(ids: number[], more: readonly number[]): void {
  for (const id of more) ids.push(id);
}

/**
 * Checks the normalizers: survival of a text's first character is only defined for those that map one
 * character at a time.
 */
function checkFirst(normalizer: Component | null, preTokenizer: Component | null): void {
  const parts = [normalizer].flatMap((part) =>
    part?.type === 'Sequence' ? part.components('normalizers') : (part ?? []),
  );
  const drops = parts.some(
    (part) => part.type === 'Sequence' || (part.type === 'Replace' && part.string('content') === ''),
  );
  const first = [preTokenizer]
    .flatMap((part) => (part?.type === 'Sequence' ? part.components('pretokenizers') : (part ?? [])))
    .find((part) => part.type === 'Metaspace' && prependScheme(part) === 'first');
  if (drops && first)
    throw first.unread('prepend_scheme "first" with a normalizer that may drop the beginning of a text');
}
