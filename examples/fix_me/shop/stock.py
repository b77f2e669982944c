"""The stock on the shelves."""


class OutOfStockError(Exception):
    pass


class Stock:
    def __init__(self, **shelves):
        self.shelves = dict(shelves)

    def take(self, item, quantity=1):
        left = self.shelves.get(item, 0)
        if left < quantity:
            raise OutOfStockError(item)
        self.shelves[item] = left - 1
        return self.shelves[item]

    def empty(self):
        """Return the items that are sold out, in order."""
        return sorted(item for item, left in self.shelves.items() if left == 0)
