package host

import "container/list"

// lru is a map of bounded size. A new entry takes the place of the one not
// touched for the longest time.
type lru[K comparable, V any] struct {
	most    int
	entries map[K]*list.Element
	order   list.List // of *lruEntry, most recently touched first
}

type lruEntry[K comparable, V any] struct {
	key   K
	value V
}

func newLRU[K comparable, V any](most int) lru[K, V] {
	return lru[K, V]{most: most, entries: make(map[K]*list.Element)}
}

// get returns the value of k, nil if there is none. It does not touch it.
func (t *lru[K, V]) get(k K) *V {
	el, ok := t.entries[k]
	if !ok {
		return nil
	}
	return &el.Value.(*lruEntry[K, V]).value
}

// touch returns the value of k, a new zero one if there was none.
func (t *lru[K, V]) touch(k K) *V {
	if el, ok := t.entries[k]; ok {
		t.order.MoveToFront(el)
		return &el.Value.(*lruEntry[K, V]).value
	}
	if len(t.entries) >= t.most {
		delete(t.entries, t.order.Remove(t.order.Back()).(*lruEntry[K, V]).key)
	}
	e := &lruEntry[K, V]{key: k}
	t.entries[k] = t.order.PushFront(e)
	return &e.value
}

// remove forgets k.
func (t *lru[K, V]) remove(k K) {
	if el, ok := t.entries[k]; ok {
		t.order.Remove(el)
		delete(t.entries, k)
	}
}
